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
 * a timer ends that at lockAtMostFor, and at lockAtLeastFor if the task has ended before.
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
    atMost = releaseAfter(configuration.getLockAtMostFor());
  }

  private CompletableFuture<Boolean> releaseAfter(Duration time) {
    CompletableFuture<Boolean> timer = new CompletableFuture<>();
    // The release waits for a server. Its failure is logged by the client.
    timer.thenAcceptAsync(over -> {
      if (over) {
        held.close();
      }
    }, FencepostLock::start);
    long nanos = TimeUnit.NANOSECONDS.convert(time); // which does not overflow
    return timer.completeOnTimeout(true, nanos, TimeUnit.NANOSECONDS);
  }

  private static void start(Runnable release) {
    Thread thread = new Thread(release, "fencepost-shedlock");
    thread.setDaemon(true);
    thread.start();
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
    if (!atMost.complete(false)) {
      return; // it is released
    }
    if (!isOver(lockConfiguration.getLockAtLeastFor())) {
      releaseAfter(left(lockConfiguration.getLockAtLeastFor()));
      return;
    }
    try {
      held.close();
    } catch (LockLostException e) {
      throw new LockException("the task ended after its lock was lost", e);
    }
  }

  @Override
  protected Optional<SimpleLock> doExtend(LockConfiguration extended) {
    if (isOver(lockConfiguration.getLockAtMostFor()) || !isHeld() || !atMost.complete(false)) {
      return Optional.empty();
    }
    return Optional.of(new FencepostLock(extended, held, dropped));
  }
}
