package io.github.fencepost;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One vector. The format is explained in clients/vectors/README.md. */
final class Vector {
  private static final double SLACK = 0.05; // seconds

  private static final Set<String> FIELDS =
      Set.of("name", "about", "config", "steps", "server", "until");
  private static final Set<String> CONFIG = Set.of("urls", "retry_for", "clock", "traceparent");
  private static final Set<String> STEP = Set.of(
      "at", "do", "as", "of", "name", "claims", "any", "ttl", "wait", "mode", "limit", "permits",
      "only_newest", "holder", "metadata", "request_release", "margin", "at_least",
      "callback_url", "event", "prefix", "state", "types", "locks", "after", "fence_presented",
      "fence_known", "resource", "secrets", "headers", "payload", "seconds", "now", "token",
      "result", "lost", "release_requested");
  private static final Set<String> RESULT = Set.of(
      "at", "error", "fence", "fences", "names", "events", "terms", "waiting", "type", "id");
  private static final Set<String> LOST = Set.of("at", "reason", "revoke_reason");
  private static final Set<String> EXCHANGE = Set.of(
      "at", "during", "least", "request", "key", "token", "headers", "send", "status", "answer",
      "body", "delay", "fault", "given_up", "stream");

  private final JsonObject all;
  private final JsonObject bodies;
  private final Map<String, String> bound = new HashMap<>(); // what $names stand for

  Vector(JsonObject all, JsonObject bodies) {
    this.all = all;
    this.bodies = bodies;
    known(all, FIELDS);
    known(config(), CONFIG);
    for (JsonElement step : steps()) {
      known(step.getAsJsonObject(), STEP);
      known(object(step, "result"), RESULT);
      known(object(step, "lost"), LOST);
    }
    for (JsonElement exchange : server()) {
      known(exchange.getAsJsonObject(), EXCHANGE);
    }
  }

  static JsonElement read(Path file) throws IOException {
    return JsonParser.parseString(Files.readString(file));
  }

  private void known(JsonObject object, Set<String> fields) {
    for (String field : object.keySet()) {
      if (!fields.contains(field)) {
        throw new AssertionError("the vector " + name() + " has a field " + field);
      }
    }
  }

  String name() {
    return all.get("name").getAsString();
  }

  JsonObject config() {
    return object(all, "config");
  }

  JsonArray steps() {
    return all.getAsJsonArray("steps");
  }

  JsonArray server() {
    return all.getAsJsonArray("server");
  }

  double until() {
    return all.get("until").getAsDouble();
  }

  /** Returns an object of an object, or an empty one. */
  static JsonObject object(JsonElement of, String name) {
    JsonElement value = of.getAsJsonObject().get(name);
    return value == null ? new JsonObject() : value.getAsJsonObject();
  }

  static String text(JsonElement of, String name) {
    JsonElement value = of.getAsJsonObject().get(name);
    return value == null ? "" : value.getAsString();
  }

  static double number(JsonElement of, String name) {
    JsonElement value = of.getAsJsonObject().get(name);
    return value == null ? 0 : value.getAsDouble();
  }

  static List<JsonElement> list(JsonElement of, String name) {
    JsonElement value = of.getAsJsonObject().get(name);
    return value == null ? List.of() : value.getAsJsonArray().asList();
  }

  /** Returns what a body's name stands for. */
  JsonElement body(JsonElement body) {
    if (body == null) {
      return new JsonObject();
    }
    if (!body.isJsonPrimitive()) {
      return body;
    }
    JsonElement known = bodies.get(body.getAsString());
    if (known == null) {
      throw new AssertionError("there is no body " + body);
    }
    return known;
  }

  /** Reports whether a time is within bounds; without bounds it is. */
  static boolean includes(JsonElement bounds, double at) {
    if (bounds == null) {
      return true;
    }
    boolean exact = bounds.isJsonPrimitive();
    double from = exact ? bounds.getAsDouble() : bounds.getAsJsonArray().get(0).getAsDouble();
    double to = exact ? from : bounds.getAsJsonArray().get(1).getAsDouble();
    return at >= from - SLACK && at <= to + SLACK;
  }

  /** Compares values. A text that begins with $ stands for any text, and then for the same. */
  boolean matches(JsonElement want, JsonElement got) {
    if (want.isJsonObject() && got.isJsonObject()) {
      JsonObject a = want.getAsJsonObject();
      JsonObject b = got.getAsJsonObject();
      return a.keySet().equals(b.keySet())
          && a.keySet().stream().allMatch(key -> matches(a.get(key), b.get(key)));
    }
    if (want.isJsonArray() && got.isJsonArray()) {
      JsonArray a = want.getAsJsonArray();
      JsonArray b = got.getAsJsonArray();
      boolean same = a.size() == b.size();
      for (int i = 0; same && i < a.size(); i++) {
        same = matches(a.get(i), b.get(i));
      }
      return same;
    }
    if (!want.isJsonPrimitive() || !got.isJsonPrimitive()) {
      return false;
    }
    if (want.getAsJsonPrimitive().isNumber() && got.getAsJsonPrimitive().isNumber()) {
      return want.getAsDouble() == got.getAsDouble();
    }
    return want.getAsJsonPrimitive().isString() && got.getAsJsonPrimitive().isString()
        ? matches(want.getAsString(), got.getAsString()) : want.equals(got);
  }

  boolean matches(String want, String got) {
    if (!want.startsWith("$")) {
      return want.equals(got);
    }
    if (bound.containsKey(want)) {
      return bound.get(want).equals(got);
    }
    boolean other = bound.containsValue(got);
    bound.put(want, got);
    return !got.isEmpty() && !other;
  }
}
