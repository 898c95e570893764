package io.github.fencepost;

/**
 * An entry that the servers keep in its queue without a connection, for as long as its wait. Its
 * grant has to be claimed within a TTL: by {@link #await}, or by {@link Fencepost#claim} where a
 * callback reports it. Otherwise the lock passes to the next in line. One thread at a time may use
 * it.
 */
public final class Pending {
  private final Fencepost client;
  private final Acquisition acquisition;
  private final String id;

  Pending(Fencepost client, Acquisition acquisition) {
    this.client = client;
    this.acquisition = acquisition;
    id = acquisition.id();
  }

  /**
   * Returns the id of the entry, as callbacks and events have it.
   *
   * @return the id
   */
  public String id() {
    return id;
  }

  /**
   * Waits for the grant and claims it; leave that to {@link Fencepost#claim} where there is a
   * callback. If the thread is interrupted, the entry keeps its position, and you can await again.
   *
   * @return the held lock
   * @throws LockLostException if the grant was not claimed in time
   */
  public Held await() {
    return client.call(acquisition::run);
  }

  /** Leaves the queue, or releases a grant that was not claimed. It tries for one TTL. */
  public void leave() {
    client.call(acquisition::leave);
  }
}
