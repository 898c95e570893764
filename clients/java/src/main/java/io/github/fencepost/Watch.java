package io.github.fencepost;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The locks that a client holds. A timer stands still while the machine is suspended, so the client
 * looks at the other clocks once a second. Where they passed more time, the deadlines of its locks
 * are nearer.
 */
final class Watch {
  private static final long EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long SLACK = TimeUnit.MILLISECONDS.toNanos(50);

  private final Clock clock;
  private final Set<Held> held = new HashSet<>();
  private boolean closed;
  private boolean looks; // a timer is set
  private Reading last;

  Watch(Clock clock) {
    this.clock = clock;
  }

  /** Begins to watch for a held lock. It reports false after the close. */
  boolean keep(Held lock) {
    Reading now = clock.read();
    synchronized (this) {
      if (closed) {
        return false;
      }
      held.add(lock);
      if (!looks) {
        last = now;
        clock.after(EVERY, this::look); // which may fail
        looks = true;
      }
      return true;
    }
  }

  /** Drops a lock that is not held any more. Without any the next look is the last. */
  synchronized void drop(Held lock) {
    held.remove(lock);
  }

  private void look() {
    Reading now = clock.read();
    List<Held> all = List.of();
    synchronized (this) {
      if (held.isEmpty()) {
        looks = false;
        return;
      }
      if (now.sleptSince(last) > SLACK) {
        all = List.copyOf(held);
      }
      last = now;
      clock.after(EVERY, this::look);
    }
    all.forEach(Held::look);
  }

  /** Returns what is held, and keeps nothing any more. */
  synchronized List<Held> close() {
    closed = true;
    return List.copyOf(held);
  }
}
