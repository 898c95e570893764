package io.github.fencepost;

import com.google.gson.JsonObject;

/** One lock of a set. */
public final class Claim {
  private final String name;
  private final String mode;
  private final int limit;
  private final int permits;

  private Claim(String name, String mode, int limit, int permits) {
    this.name = name;
    this.mode = mode;
    this.limit = limit;
    this.permits = permits;
  }

  /**
   * Claims a lock for one holder.
   *
   * @param name of the lock
   * @return the claim
   */
  public static Claim exclusive(String name) {
    return new Claim(name, "", 0, 0);
  }

  /**
   * Claims a lock together with other shared holders.
   *
   * @param name of the lock
   * @return the claim
   */
  public static Claim shared(String name) {
    return new Claim(name, "shared", 0, 0);
  }

  /**
   * Claims one of the permits of a semaphore.
   *
   * @param name of the lock
   * @param limit how many permits there are; each entry is judged by its own
   * @return the claim
   */
  public static Claim semaphore(String name, int limit) {
    return semaphore(name, limit, 0);
  }

  /**
   * Claims permits of a semaphore.
   *
   * @param name of the lock
   * @param limit how many permits there are; each entry is judged by its own
   * @param permits how many of them the claim takes
   * @return the claim
   */
  public static Claim semaphore(String name, int limit, int permits) {
    return new Claim(name, "semaphore", limit, permits);
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name
   */
  public String name() {
    return name;
  }

  JsonObject json() {
    JsonObject json = new JsonObject();
    json.addProperty("name", name);
    addMode(json, mode, limit, permits);
    return json;
  }

  static void addMode(JsonObject to, String mode, int limit, int permits) {
    if (!mode.isEmpty()) {
      to.addProperty("mode", mode);
    }
    if (limit > 0) {
      to.addProperty("limit", limit);
    }
    if (permits > 0) {
      to.addProperty("permits", permits);
    }
  }
}
