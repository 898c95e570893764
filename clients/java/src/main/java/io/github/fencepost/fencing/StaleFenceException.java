package io.github.fencepost.fencing;

import io.github.fencepost.Fencepost;
import io.github.fencepost.StaleWrite;

/** A later holder of the lock has written: roll back, and stop. */
@SuppressWarnings("serial")
public final class StaleFenceException extends RuntimeException {
  private final transient StaleWrite write;

  StaleFenceException(StaleWrite write) {
    super(write.toString());
    this.write = write;
  }

  /**
   * Shows the refused write to operators. Call it after the transaction: the client retries.
   *
   * @param client that sends the report
   */
  public void report(Fencepost client) {
    client.staleWrite(write);
  }

  /**
   * Returns the refused write.
   *
   * @return the write, with both fences
   */
  public StaleWrite write() {
    return write;
  }
}
