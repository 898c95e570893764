package io.github.fencepost.fencing;

import io.github.fencepost.Fencepost;

/** A later holder of the lock has written: roll back, and stop. */
@SuppressWarnings("serial")
public final class StaleFenceException extends RuntimeException {
  /** Name of the lock. */
  private final String lock;

  /** Fence of the refused holder. */
  private final long presented;

  /** Greatest fence that the resource has seen. */
  private final long known;

  /** What the lock protects. */
  private final String resource;

  StaleFenceException(String lock, long presented, long known, String resource) {
    super("the fence " + presented + " of " + lock + " is stale: " + known + " has written");
    this.lock = lock;
    this.presented = presented;
    this.known = known;
    this.resource = resource;
  }

  /**
   * Shows the refused write to operators. Call it after the transaction: the client retries.
   *
   * @param client that sends the report
   */
  public void report(Fencepost client) {
    client.staleWrite(lock, presented, known, resource);
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name
   */
  public String lock() {
    return lock;
  }

  /**
   * Returns the fence of the refused holder.
   *
   * @return the fence
   */
  public long presented() {
    return presented;
  }

  /**
   * Returns the greatest fence that the resource has seen.
   *
   * @return the fence
   */
  public long known() {
    return known;
  }
}
