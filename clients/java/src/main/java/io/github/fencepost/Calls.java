package io.github.fencepost;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The calls of a client, and what they leave behind, which its close ends. */
final class Calls {
  /** How long a close lets calls that were cancelled leave their queues. */
  private static final long LINGER = TimeUnit.SECONDS.toNanos(2);

  private final CompletableFuture<Void> drained = new CompletableFuture<>();
  private final Set<Scope> open = new HashSet<>();
  private final Set<Scope> lingering = new HashSet<>();
  private boolean closed;

  /** Counts a call. It reports false after the close. */
  synchronized boolean begin(Scope scope) {
    return !closed && open.add(scope);
  }

  /** Counts what goes on in the background after a call. */
  synchronized void linger(Scope scope) {
    lingering.add(scope);
  }

  synchronized void end(Scope scope) {
    open.remove(scope);
    lingering.remove(scope);
    completeIfDrained();
  }

  private void completeIfDrained() {
    if (closed && open.isEmpty() && lingering.isEmpty()) {
      drained.complete(null);
    }
  }

  synchronized boolean closed() {
    return closed;
  }

  /** Cancels all calls. The future is done when nothing of them goes on, or 2 s later. */
  CompletableFuture<Void> close(Clock clock) {
    List<Scope> calls;
    synchronized (this) {
      closed = true;
      calls = List.copyOf(open);
      completeIfDrained();
    }
    calls.forEach(Scope::cancel);
    Runnable timer = clock.after(LINGER, this::stop);
    return drained.whenComplete((nothing, failure) -> timer.run());
  }

  private void stop() {
    List<Scope> rest;
    synchronized (this) {
      rest = List.copyOf(lingering);
    }
    rest.forEach(Scope::cancel);
    drained.complete(null);
  }
}
