package io.github.fencepost;

import com.google.gson.JsonObject;
import java.util.concurrent.TimeUnit;

/** One request, wherever it is sent. */
final class Request {
  static final long TIMEOUT = TimeUnit.SECONDS.toNanos(10); // of one that does not wait for a lock

  final String method;
  final String path;
  String token = ""; // of the lock
  String key = ""; // Idempotency-Key
  String after = ""; // Last-Event-ID
  String prefer = "";
  JsonObject body; // null is none
  long timeout = TIMEOUT;

  Request(String method, String path) {
    this.method = method;
    this.path = path;
  }

  static Request renewal(Target of, Entry entry, long ttl) {
    Request r = new Request("PUT", of.heldPath(entry.id) + "/renew");
    r.token = entry.token;
    r.timeout = Math.min(TIMEOUT, ttl / 3);
    return r;
  }

  static Request release(Target of, Entry entry) {
    Request r = new Request("DELETE", of.heldPath(entry.id));
    r.token = entry.token;
    return r;
  }
}
