package io.github.fencepost;

/** What the clocks show at an instant, in nanoseconds, each since an origin of its own. */
final class Reading {
  private final long monotonic; // stands still while the machine is suspended, on Linux
  private final long boot; // like monotonic, and passes while suspended; 0 where there is none
  private final long wall; // may be set, forward and back

  Reading(long monotonic, long boot, long wall) {
    this.monotonic = monotonic;
    this.boot = boot;
    this.wall = wall;
  }

  /**
   * Returns how much time passed since an earlier reading. Of two clocks it believes the one by
   * which more time passed: a lock that ends too early costs a retry, one that ends too late
   * costs data. Without a boot clock a wall clock that is set forward ends locks early.
   */
  long since(Reading earlier) {
    return Math.max(ranSince(earlier), other(earlier));
  }

  /** Returns how much time passed by the monotonic clock since an earlier reading. */
  long ranSince(Reading earlier) {
    return monotonic - earlier.monotonic;
  }

  /** Returns for how long the monotonic clock stood still since an earlier reading. */
  long sleptSince(Reading earlier) {
    return Math.max(0, other(earlier) - ranSince(earlier));
  }

  private long other(Reading earlier) {
    return boot != 0 && earlier.boot != 0 ? boot - earlier.boot : wall - earlier.wall;
  }
}
