package io.github.fencepost;

/** The calling thread, while it is blocked in a request. */
final class Blocked {
  private Thread thread = Thread.currentThread(); // null after the request
  private boolean woken;

  /** Interrupts the request. */
  synchronized void wake() {
    if (thread != null) {
      woken = true;
      thread.interrupt();
    }
  }

  /** Ends the request, and takes back the interrupt of a wake. It reports whether there was one. */
  synchronized boolean end() {
    thread = null;
    if (woken) {
      Thread.interrupted();
    }
    return woken;
  }
}
