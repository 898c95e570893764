package io.github.fencepost;

import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.List;

/** A lock as the servers see it. */
public final class LockInfo {
  private final JsonObject from;

  LockInfo(JsonObject from) {
    this.from = from;
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name
   */
  public String name() {
    return Json.text(from, "name");
  }

  /**
   * Returns the holders, the longest holding first.
   *
   * @return at most 100 of them
   */
  public List<Holder> holders() {
    return Json.objects(from, "holders", Holder::new);
  }

  /**
   * Returns the waiters in order. A list of locks does not have them.
   *
   * @return at most 1000 of them
   */
  public List<Holder> waiters() {
    return Json.objects(from, "waiters", Holder::new);
  }

  /**
   * Returns how many wait.
   *
   * @return the number
   */
  public long waiting() {
    return Json.number(from, "waiting");
  }

  /**
   * Returns the newest fence that was handed out, as far as the replica knows.
   *
   * @return the fence; 0 if it knows none
   */
  public long fence() {
    return Json.number(from, "fence");
  }

  /**
   * Returns twice the hold time that one in a hundred exceeds. A list of locks does not have it.
   *
   * @return the TTL; zero before ten acquisitions
   */
  public Duration recommendedTtl() {
    return Json.seconds(Json.object(from, "figures"), "recommended_ttl_seconds");
  }

  /**
   * Returns all of the answer, with the figures.
   *
   * @return JSON
   */
  public String json() {
    return from.toString();
  }
}
