package io.github.fencepost;

import com.google.gson.JsonObject;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a server says of an entry, of one lock or of a set, that waits or holds. */
final class Entry {
  static final Entry NONE = new Entry(new JsonObject(), "");

  final String id;
  final String token; // empty if it is not known
  final boolean held;
  final long ttl; // nanoseconds
  final Map<String, Long> fences; // of a set, by name; of one lock, under its name
  final ReleaseRequested releaseRequested; // null if no waiter asks

  private Entry(JsonObject from, String state) {
    id = Json.text(from, "id");
    token = Json.text(from, "token");
    held = state.equals("held");
    ttl = Json.seconds(from, "ttl_seconds").toNanos();
    fences = fences(from);
    releaseRequested =
        !Json.object(from, "release_requested").keySet().isEmpty()
            ? new ReleaseRequested(Json.object(from, "release_requested")) : null;
  }

  private static Map<String, Long> fences(JsonObject from) {
    if (!from.has("locks")) {
      return Map.of(Json.text(from, "name"), Json.number(from, "fence"));
    }
    Map<String, Long> all = new LinkedHashMap<>();
    Json.objects(from, "locks", lock ->
        all.put(Json.text(lock, "name"), Json.number(lock, "fence")));
    return Collections.unmodifiableMap(all);
  }

  /** Returns the entry that a body is, or null if that has no token or no lease. */
  static Entry of(JsonObject body) {
    if (body == null || Json.text(body, "token").isEmpty()) {
      return null;
    }
    Entry entry = new Entry(body, Json.text(body, "state"));
    return entry.ttl > 0 && !entry.fences.isEmpty() ? entry : null;
  }

  /** Returns the entry that a replica hands over, or null. Its grant has to be asked for. */
  static Entry handedOver(JsonObject body) {
    for (String name : new String[] {"entry", "set"}) {
      if (body != null && !Json.text(Json.object(body, name), "token").isEmpty()) {
        return new Entry(Json.object(body, name), "");
      }
    }
    return null;
  }

  /** Returns the entry of a token that another process hands over. */
  static Entry adopted(String token) {
    JsonObject entry = new JsonObject();
    entry.addProperty("token", token);
    return new Entry(entry, "held");
  }

  /** Returns the entry of a grant that a callback reported. */
  static Entry granted(JsonObject from) {
    return new Entry(from, "held");
  }
}
