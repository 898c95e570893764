package io.github.fencepost;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;

/** What happened to a lock, or that events are missing. */
public final class Event {
  private final JsonObject from;

  private Event(JsonObject from) {
    this.from = from;
  }

  /**
   * Reads an event, such as one that another process verified.
   *
   * @param json of the event
   * @return the event
   * @throws IllegalArgumentException if it is none
   */
  public static Event parse(String json) {
    Event event = parse(json.getBytes(StandardCharsets.UTF_8));
    if (event == null) {
      throw new IllegalArgumentException("the text is no event");
    }
    return event;
  }

  /** Returns the event that a text is, or null. */
  static Event parse(byte[] text) {
    JsonObject from = Json.object(text);
    return from == null || Json.text(from, "type").isEmpty() ? null : new Event(from);
  }

  /**
   * Returns the id. An event that comes twice has the same.
   *
   * @return the id
   */
  public String id() {
    return Json.text(from, "id");
  }

  /**
   * Returns the type, such as {@code lock.acquired}, or {@code events.missed}.
   *
   * @return the type
   */
  public String type() {
    return Json.text(from, "type");
  }

  /**
   * Returns when a server saw it.
   *
   * @return the instant
   */
  public Instant timestamp() {
    return Json.instant(from, "timestamp");
  }

  /**
   * Returns the number of the write that caused it: it grows.
   *
   * @return the number
   */
  public long number() {
    return Json.number(data(), "number");
  }

  /**
   * Returns the lock.
   *
   * @return its name; empty for a set
   */
  public String lock() {
    return Json.text(data(), "lock");
  }

  /**
   * Returns the locks of a set.
   *
   * @return their names
   */
  public List<String> locks() {
    return Json.texts(data(), "locks");
  }

  /**
   * Returns the id of the entry.
   *
   * @return the id; empty if it is about none
   */
  public String entryId() {
    return Json.text(entry(), "id");
  }

  /**
   * Returns the worker whose entry it is.
   *
   * @return its name
   */
  public String holder() {
    return Json.text(entry(), "holder");
  }

  /**
   * Returns the fence of the grant.
   *
   * @return the fence; 0 if there is none
   */
  public long fence() {
    return Json.number(entry(), "fence");
  }

  /**
   * Returns why the entry ended, or why events are missing.
   *
   * @return the reason; may be empty
   */
  public String reason() {
    return Json.text(data(), "reason");
  }

  /**
   * Returns all of the event. That of a callback has the token of the lock: keep it secret.
   *
   * @return JSON
   */
  public String json() {
    return from.toString();
  }

  /** Names the event, without its data. */
  @Override
  public String toString() {
    return type() + " " + id();
  }

  private JsonObject data() {
    return Json.object(from, "data");
  }

  private JsonObject entry() {
    return Json.object(data(), "entry");
  }

  /** Reports whether it has what each delivery has. */
  boolean isWhole() {
    return isText("id") && isText("type") && isText("timestamp")
        && from.has("data") && from.get("data").isJsonObject();
  }

  private boolean isText(String name) {
    JsonElement value = from.get(name);
    return value instanceof JsonPrimitive && ((JsonPrimitive) value).isString();
  }

  /** Returns the entry of a grant, or null if the event is none that can be claimed. */
  Entry grant() {
    boolean granted = type().equals("lock.acquired") && !Json.text(entry(), "token").isEmpty();
    return granted ? Entry.granted(entry()) : null;
  }
}
