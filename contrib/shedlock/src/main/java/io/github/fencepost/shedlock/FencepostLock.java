package io.github.fencepost.shedlock;

import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockLostException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * A lock from its grant, or its extension, until it is unlocked or extended. The client renews it;
 * a timer ends that at lockAtMostFor, and a thread at lockAtLeastFor if the task ended before.
 */
final class FencepostLock extends AbstractSimpleLock {
  private final Held held;
  private final Runnable dropped;
  private final long began = System.nanoTime();
  private final CompletableFuture<Boolean> atMost; // true when it is over

  FencepostLock(LockConfiguration configuration, Held held, Runnable dropped) {
    super(configuration);
    this.held = held;
    this.dropped = dropped;
    long nanos = TimeUnit.NANOSECONDS.convert(configuration.getLockAtMostFor()); // or the most
    atMost = new CompletableFuture<Boolean>().completeOnTimeout(true, nanos, TimeUnit.NANOSECONDS);
    atMost.thenAccept(over -> {
      if (over) {
        start(this::release);
      }
    });
  }

  /** Starts what waits for a server, which the thread of all timers must not. */
  private static void start(Runnable task) {
    Thread thread = new Thread(task, "fencepost-shedlock");
    thread.setDaemon(true);
    thread.start();
  }

  private void release() {
    try {
      held.close();
    } catch (LockLostException e) {
      // The task is over, or has no time left. The client has logged it.
    }
  }

  private Duration left(Duration time) {
    return time.minusNanos(System.nanoTime() - began);
  }

  private boolean isOver(Duration time) {
    return left(time).compareTo(Duration.ZERO) <= 0;
  }

  private boolean isHeld() {
    try {
      held.check();
      return true;
    } catch (FencepostException e) {
      return false;
    }
  }

  @Override
  protected void doUnlock() {
    dropped.run();
    if (isHeld() && !isOver(lockConfiguration.getLockAtLeastFor())) {
      keepAtLeast();
      return;
    }
    if (atMost.complete(false)) { // else it is released
      try {
        held.close();
      } catch (LockLostException e) {
        throw new LockException("the task ended after its lock was lost", e);
      }
    }
  }

  /** Has another thread keep the lock. A loss interrupts that one then, and not the task's. */
  private void keepAtLeast() {
    CompletableFuture<Void> began = new CompletableFuture<>();
    start(() -> {
      held.interruptOnLost();
      began.complete(null);
      try {
        TimeUnit.NANOSECONDS.sleep(left(lockConfiguration.getLockAtLeastFor()).toNanos());
      } catch (InterruptedException e) {
        // It is lost.
      }
      if (atMost.complete(false)) {
        release();
      }
    });
    began.join();
  }

  @Override
  protected Optional<SimpleLock> doExtend(LockConfiguration extended) {
    if (isOver(lockConfiguration.getLockAtMostFor()) || !isHeld() || !atMost.complete(false)) {
      return Optional.empty();
    }
    return Optional.of(new FencepostLock(extended, held, dropped));
  }
}
