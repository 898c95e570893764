package io.github.fencepost.spring;

import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockLostException;
import io.github.fencepost.spring.FencepostLockRegistry.Hold;
import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.springframework.integration.support.locks.DistributedLock;

/**
 * A lock of a registry. It is reentrant; the thread that locks it unlocks it.
 *
 * @param registry that obtained it
 * @param name of the lock at Fencepost
 */
public record FencepostLock(FencepostLockRegistry registry, String name)
    implements DistributedLock {
  private static final Duration FOREVER = Duration.ofDays(1); // of one request; it is repeated

  /**
   * Returns what the calling thread holds: the fence for each write, a check, and a listener for
   * its loss.
   *
   * @return the lock at Fencepost; {@link #unlock} releases it
   * @throws IllegalMonitorStateException if the thread does not hold it
   */
  public Held held() {
    return owned().held;
  }

  private Hold owned() {
    Hold hold = registry.hold(name);
    if (hold == null) {
      throw new IllegalMonitorStateException("You do not own lock at " + name);
    }
    return hold;
  }

  @Override
  public void lock() {
    lock(registry.ttl());
  }

  @Override
  public void lock(Duration ttl) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          lockInterruptibly(ttl);
          return;
        } catch (InterruptedException e) {
          interrupted = true; // the thread queues again
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public void lockInterruptibly() throws InterruptedException {
    lockInterruptibly(registry.ttl());
  }

  private void lockInterruptibly(Duration ttl) throws InterruptedException {
    checkInterrupt();
    Hold hold = registry.hold(name);
    if (hold != null) {
      checkHeld(hold);
      hold.count++;
      return;
    }
    boolean acquired = false;
    while (!acquired) {
      acquired = registry.acquire(name, FOREVER, ttl);
    }
  }

  private static void checkInterrupt() throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
  }

  private static void checkHeld(Hold hold) {
    try {
      hold.held.check();
    } catch (FencepostException e) {
      throw lost(e);
    }
  }

  private static ConcurrentModificationException lost(FencepostException why) {
    return new ConcurrentModificationException(
        "Lock was released in the store due to expiration: " + why.getMessage(), why);
  }

  @Override
  public boolean tryLock() {
    boolean interrupted = Thread.interrupted(); // it does not wait, so none ends it
    try {
      return tryLock(Duration.ZERO, registry.ttl());
    } catch (InterruptedException e) {
      interrupted = true;
      return false;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    return tryLock(Duration.of(time, unit.toChronoUnit()), registry.ttl());
  }

  /**
   * {@inheritDoc}
   *
   * <p>If the thread has lost the lock, it reports false, and the thread holds it no more: so the
   * leader initiator ends its term.
   */
  @Override
  public boolean tryLock(Duration waitTime, Duration ttl) throws InterruptedException {
    checkInterrupt();
    Hold hold = registry.hold(name);
    if (hold == null) {
      return registry.acquire(name, waitTime, ttl);
    }
    try {
      checkHeld(hold);
      hold.count++;
      return true;
    } catch (ConcurrentModificationException e) {
      registry.drop(name);
      return false;
    }
  }

  /**
   * Releases the lock, if the thread has unlocked it as often as locked.
   *
   * @throws IllegalMonitorStateException if the thread does not hold it
   * @throws ConcurrentModificationException if the lock was lost before
   */
  @Override
  public void unlock() {
    Hold hold = owned();
    if (--hold.count > 0) {
      return;
    }
    registry.drop(name);
    try {
      hold.held.close();
    } catch (LockLostException e) {
      throw lost(e);
    }
  }

  @Override
  public Condition newCondition() {
    throw new UnsupportedOperationException("a lock of Fencepost has no conditions");
  }
}
