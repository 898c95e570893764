package io.github.fencepost;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Reads JSON of the server. What is missing, or of another type than expected, is empty, so that a
 * server may add to its answers.
 */
final class Json {
  private Json() {}

  /** Returns the object that a text is, or null. By itself Gson reads more than JSON. */
  static JsonObject object(byte[] text) {
    JsonReader reader = new JsonReader(new StringReader(new String(text, StandardCharsets.UTF_8)));
    reader.setStrictness(Strictness.STRICT);
    try {
      JsonElement all = JsonParser.parseReader(reader);
      boolean whole = reader.peek() == JsonToken.END_DOCUMENT;
      return whole && all.isJsonObject() ? all.getAsJsonObject() : null;
    } catch (JsonParseException | IOException e) {
      return null;
    }
  }

  /** Returns an object of an object, which is empty if there is none. */
  static JsonObject object(JsonObject of, String name) {
    JsonElement value = of.get(name);
    return value != null && value.isJsonObject() ? value.getAsJsonObject() : new JsonObject();
  }

  static String text(JsonObject of, String name) {
    JsonElement value = of.get(name);
    return value != null && value.isJsonPrimitive() ? value.getAsString() : "";
  }

  static double decimal(JsonObject of, String name) {
    try {
      String text = text(of, name);
      return text.isEmpty() ? 0 : Double.parseDouble(text);
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  /** Returns an integer. */
  static long number(JsonObject of, String name) {
    String text = text(of, name);
    return text.matches("[0-9]{1,18}") ? Long.parseLong(text) : (long) decimal(of, name);
  }

  static Duration seconds(JsonObject of, String name) {
    return Duration.ofNanos((long) (decimal(of, name) * 1e9));
  }

  /** Returns null if there is none. */
  static Instant instant(JsonObject of, String name) {
    try {
      String text = text(of, name);
      return text.isEmpty() ? null : Instant.parse(text);
    } catch (DateTimeParseException e) {
      return null;
    }
  }

  static <T> List<T> list(JsonObject of, String name, Function<JsonElement, T> read) {
    JsonElement value = of.get(name);
    List<T> all = new ArrayList<>();
    if (value != null && value.isJsonArray()) {
      value.getAsJsonArray().forEach(one -> all.add(read.apply(one)));
    }
    return Collections.unmodifiableList(all);
  }

  /** Returns the objects of a list. */
  static <T> List<T> objects(JsonObject of, String name, Function<JsonObject, T> read) {
    return list(of, name, one -> read.apply(
        one.isJsonObject() ? one.getAsJsonObject() : new JsonObject()));
  }

  static List<String> texts(JsonObject of, String name) {
    return list(of, name, one -> one.isJsonPrimitive() ? one.getAsString() : "");
  }

  static Map<String, String> pairs(JsonObject of, String name) {
    JsonObject value = object(of, name);
    Map<String, String> all = new LinkedHashMap<>();
    value.keySet().forEach(key -> all.put(key, text(value, key)));
    return Collections.unmodifiableMap(all);
  }
}
