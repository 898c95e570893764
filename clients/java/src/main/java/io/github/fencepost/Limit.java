package io.github.fencepost;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** How long a call may take, and its pauses. */
final class Limit {
  private static final long FIRST = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long LONGEST = TimeUnit.SECONDS.toNanos(5);
  private static final long SHORTEST = TimeUnit.MILLISECONDS.toNanos(100); // of a held lock

  private final LongSupplier left;
  private final boolean held;

  private Limit(LongSupplier left, boolean held) {
    this.left = left;
    this.held = held;
  }

  static Limit of(LongSupplier left) {
    return new Limit(left, false);
  }

  /** Returns a limit that is the deadline of a held lock: pauses are shortened to fit. */
  static Limit ofHeld(LongSupplier left) {
    return new Limit(left, true);
  }

  /** Returns a limit that is some nanoseconds from now. */
  static Limit within(Clock clock, long nanos) {
    Reading begun = clock.read();
    return of(() -> nanos - clock.read().since(begun));
  }

  long left() {
    return left.getAsLong();
  }

  /**
   * Returns how long to wait before the next attempt: what the server asked for, or else longer
   * each time. A held lock is renewed in time rather than when the server likes.
   */
  long pause(long asked, int pauses) {
    long pause = asked > 0 ? asked : jittered(pauses);
    return held ? Math.min(pause, Math.max(left() / 3, SHORTEST)) : pause;
  }

  static long jittered(int pauses) {
    long pause = Math.min(FIRST << Math.min(pauses, 10), LONGEST);
    return pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2);
  }
}
