package io.github.fencepost;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/** Time and threads, as the client sees them. */
interface Clock {
  /** Reads all clocks. It takes no lock of the client. */
  Reading read();

  /**
   * Runs a task after some nanoseconds, on a thread that it must not block: that would delay the
   * deadlines of locks. Returns what cancels it.
   */
  Runnable after(long nanos, Runnable task);

  /** Runs a task on a thread that it may block. */
  void execute(Runnable task);

  /** Blocks the calling thread until the future is done. */
  <T> T await(CompletableFuture<T> future) throws InterruptedException, ExecutionException;
}
