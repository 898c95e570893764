package io.github.fencepost.spring;

import io.github.fencepost.Fencepost;
import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockOptions;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.integration.support.locks.LockRegistry;
import org.springframework.integration.util.UUIDConverter;
import org.springframework.util.Assert;

/**
 * Keeps the locks of Spring Integration at Fencepost. It keeps nothing of locks that are not held,
 * so there is nothing to expire: locks of one key are equal, and interchangeable.
 */
public final class FencepostLockRegistry implements LockRegistry<FencepostLock> {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._:@=+-]{1,100}");
  private static final Duration LONGEST_WAIT = Duration.ofDays(1); // that servers accept

  private final Fencepost fencepost;
  private final String prefix;
  private final Duration ttl;
  private final String process = ManagementFactory.getRuntimeMXBean().getName()
      + "/" + UUID.randomUUID().toString().substring(0, 8);
  private final ThreadLocal<Map<String, Hold>> holds = ThreadLocal.withInitial(HashMap::new);

  /** What a thread holds, and how often it has locked that. */
  static final class Hold {
    final Held held;
    int count = 1;

    Hold(Held held) {
      this.held = held;
    }
  }

  /**
   * Returns a registry that acquires locks by a client. The caller closes the client.
   *
   * @param fencepost is the client
   * @param prefix of the names of the locks, such as {@code "orders:"}
   * @param ttl of the lease, which the client renews; 2 s or more
   */
  public FencepostLockRegistry(Fencepost fencepost, String prefix, Duration ttl) {
    this.fencepost = fencepost;
    this.prefix = prefix;
    this.ttl = ttl;
  }

  /**
   * Returns the lock of a key. Its name is the prefix and the key, or a hash of the key if the key
   * has other characters than names have, or more than 100.
   */
  @Override
  public FencepostLock obtain(Object lockKey) {
    Assert.notNull(lockKey, "'lockKey' must not be null");
    String key = lockKey.toString();
    return new FencepostLock(this,
        prefix + (NAME.matcher(key).matches() ? key : UUIDConverter.getUUID(lockKey)));
  }

  Duration ttl() {
    return ttl;
  }

  /** Returns what the calling thread holds, or null. */
  Hold hold(String name) {
    return holds.get().get(name);
  }

  /** Drops what the calling thread held. */
  void drop(String name) {
    Map<String, Hold> mine = holds.get();
    mine.remove(name);
    if (mine.isEmpty()) {
      holds.remove();
    }
  }

  /**
   * Acquires a lock for the calling thread. It reports false if the wait is over.
   *
   * @throws InterruptedException if the thread is interrupted, before or meanwhile
   */
  boolean acquire(String name, Duration wait, Duration lease) throws InterruptedException {
    Duration atMost = wait.compareTo(LONGEST_WAIT) < 0 ? wait : LONGEST_WAIT;
    LockOptions options = LockOptions.ttl(lease)
        .wait(atMost.isNegative() ? Duration.ZERO : atMost)
        .holder(process + "/" + Thread.currentThread().getId()); // deadlocks are found by it
    try {
      holds.get().put(name, new Hold(fencepost.lock(name, options)));
      return true;
    } catch (FencepostException.LockHeld | FencepostException.WaitTimeout e) {
      return false;
    } catch (FencepostException e) {
      if (e instanceof FencepostException.Cancelled && Thread.interrupted()) {
        throw new InterruptedException(e.getMessage());
      }
      throw new CannotAcquireLockException("cannot acquire the lock " + name, e);
    }
  }
}
