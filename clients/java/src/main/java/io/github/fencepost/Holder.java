package io.github.fencepost;

import com.google.gson.JsonObject;
import java.time.Instant;
import java.util.Map;

/** One holder of a lock, or one waiter. */
public final class Holder {
  private final JsonObject from;

  Holder(JsonObject from) {
    this.from = from;
  }

  /**
   * Returns the worker that asked.
   *
   * @return its name
   */
  public String holder() {
    return Json.text(from, "holder");
  }

  /**
   * Returns the mode in which the lock is held or waited for.
   *
   * @return exclusive, shared or semaphore
   */
  public String mode() {
    return Json.text(from, "mode");
  }

  /**
   * Returns the fence of the grant.
   *
   * @return the fence; 0 of a waiter
   */
  public long fence() {
    return Json.number(from, "fence");
  }

  /**
   * Returns the position in the queue; 1 is next.
   *
   * @return the position; 0 of a holder
   */
  public long position() {
    return Json.number(from, "position");
  }

  /**
   * Returns since when the lock is held or waited for.
   *
   * @return the instant
   */
  public Instant since() {
    return Json.instant(from, from.has("since") ? "since" : "enqueued_at");
  }

  /**
   * Returns when the lease ends unless it is renewed.
   *
   * @return the instant; null if the server was not asked for it
   */
  public Instant expiresAt() {
    return Json.instant(from, "expires_at");
  }

  /**
   * Returns the metadata that were sent.
   *
   * @return the pairs
   */
  public Map<String, String> metadata() {
    return Json.pairs(from, "metadata");
  }
}
