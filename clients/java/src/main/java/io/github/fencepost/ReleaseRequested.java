package io.github.fencepost;

import com.google.gson.JsonObject;
import java.time.Instant;

/** Waiters ask the holder to finish. Nothing is taken away. */
public final class ReleaseRequested {
  private final JsonObject from;

  ReleaseRequested(JsonObject from) {
    this.from = from;
  }

  /**
   * Returns when the first of them asked.
   *
   * @return the instant
   */
  public Instant since() {
    return Json.instant(from, "since");
  }

  /**
   * Returns the worker that asked first.
   *
   * @return its name
   */
  public String by() {
    return Json.text(from, "by");
  }

  /**
   * Returns how many ask.
   *
   * @return the number
   */
  public long waiting() {
    return Json.number(from, "waiting");
  }

  /**
   * Returns the earliest instant by which one of them hopes for the lock.
   *
   * @return the instant
   */
  public Instant wishedAt() {
    return Json.instant(from, "wished_at");
  }

  /** Reports whether another waiter is the first to ask. */
  boolean differs(ReleaseRequested before) {
    return before == null || !by().equals(before.by())
        || !Json.text(from, "since").equals(Json.text(before.from, "since"));
  }
}
