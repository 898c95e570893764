package io.github.fencepost.shedlock;

import io.github.fencepost.Fencepost;
import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockOptions;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import net.javacrumbs.shedlock.support.Utils;

/** Keeps the locks of ShedLock at Fencepost. Many threads may call its methods at once. */
public final class FencepostLockProvider implements ExtensibleLockProvider {
  private static final Duration SHORTEST = Duration.ofSeconds(2); // leases that servers grant
  private static final Duration LONGEST = Duration.ofHours(1); // unless they are set otherwise

  private final Fencepost fencepost;

  // Of each thread, because a late task must not find the fence of the next one.
  private final ThreadLocal<Map<String, Held>> locks = ThreadLocal.withInitial(HashMap::new);

  /**
   * Returns a provider that acquires locks by a client. The caller closes the client.
   *
   * @param fencepost is the client
   */
  public FencepostLockProvider(Fencepost fencepost) {
    this.fencepost = fencepost;
  }

  /**
   * Acquires a lock if it is free.
   *
   * @throws LockException if that is not known, or a server rejects the request
   */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration wanted) {
    String name = wanted.getName();
    LockOptions options =
        LockOptions.ttl(leaseOf(wanted.getLockAtMostFor())).holder(Utils.getHostname());
    try {
      Held held = fencepost.tryLock(name, options);
      locks.get().put(name, held);
      return Optional.of(new FencepostLock(wanted, held, () -> drop(name, held)));
    } catch (FencepostException.LockHeld e) {
      return Optional.empty();
    } catch (FencepostException e) {
      throw new LockException("cannot acquire the lock " + name, e);
    }
  }

  private static Duration leaseOf(Duration atMost) {
    Duration lease = atMost.compareTo(LONGEST) < 0 ? atMost : LONGEST;
    return lease.compareTo(SHORTEST) > 0 ? lease : SHORTEST;
  }

  private void drop(String name, Held held) {
    Map<String, Held> mine = locks.get();
    mine.remove(name, held);
    if (mine.isEmpty()) {
      locks.remove();
    }
  }

  /**
   * Returns the lock that the calling thread acquired: its fence for each write, a check, and a
   * listener for its loss. ShedLock releases it.
   *
   * @param name of the lock
   * @return the lock
   * @throws NoSuchElementException if the thread did not acquire it, or has unlocked it
   */
  public Held held(String name) {
    Held held = locks.get().get(name);
    if (held == null) {
      throw new NoSuchElementException("this thread did not acquire the lock " + name);
    }
    return held;
  }
}
