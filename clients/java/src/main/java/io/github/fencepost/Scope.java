package io.github.fencepost;

import java.util.Map;

/** What one call, or the life of one lock, can be cancelled by. */
final class Scope {
  private static final Runnable NOTHING = () -> {};

  /** Headers that the caller adds to each request, such as its trace. */
  final Map<String, String> headers;

  private Thread caller; // which waits for the call anyway; null if none does
  private Runnable abort = NOTHING;
  private boolean cancelled;

  Scope(Map<String, String> headers, Thread caller) {
    this.headers = headers;
    this.caller = caller;
  }

  /**
   * Reports whether the calling thread may block until a request is answered. That is for the first
   * one of a call: each more would need more of its stack.
   */
  synchronized boolean mayBlock() {
    boolean may = Thread.currentThread() == caller && !caller.isInterrupted();
    caller = null;
    return may;
  }

  /** Says what ends the step under way. In a scope that is cancelled, that is now. */
  void step(Runnable abort) {
    if (!begin(abort)) {
      abort.run();
    }
  }

  private synchronized boolean begin(Runnable abort) {
    this.abort = abort;
    return !cancelled;
  }

  /** Says that no step is under way. */
  void rest() {
    begin(NOTHING);
  }

  void cancel() {
    Runnable now;
    synchronized (this) {
      cancelled = true;
      now = abort;
    }
    now.run();
  }

  synchronized boolean cancelled() {
    return cancelled;
  }
}
