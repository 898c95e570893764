package io.github.fencepost;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Duration;

/** A problem that a server sent, or one of the client. */
final class Problem {
  final String code;
  final String title;
  final int status;
  final JsonObject body; // without what is secret
  final Duration retryAfter;

  private Problem(String code, String title, int status, JsonObject body, Duration retryAfter) {
    this.code = code;
    this.title = title;
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }

  static Problem of(String code, String title) {
    return new Problem(code, title, 0, new JsonObject(), Duration.ZERO);
  }

  /** Reads the problem that an answer is. One that a proxy sent has no code. */
  static Problem of(Answer answer) {
    JsonObject body = answer.body == null ? new JsonObject() : answer.body.deepCopy();
    body.remove("entry"); // these have the lock's token
    body.remove("set");
    String code = Json.text(body, "code");
    if (code.isEmpty()) {
      String title = "the answer has the status " + answer.status;
      return new Problem("", title, answer.status, new JsonObject(), answer.retryAfter);
    }
    String title = Json.text(body, "title");
    return new Problem(code, title, answer.status, body, answer.retryAfter);
  }

  /** Returns the same problem with another code. */
  Problem withCode(String other) {
    return new Problem(other, other.replace('_', ' '), status, body, retryAfter);
  }

  /** Returns the text of a field, or its JSON if it is no text; empty if there is none. */
  String field(String name) {
    JsonElement value = body.get(name);
    if (value == null) {
      return "";
    }
    return value.isJsonPrimitive() ? value.getAsString() : value.toString();
  }

  String message() {
    String text = field("detail").isEmpty() ? title : title + ": " + field("detail");
    if (code.isEmpty()) {
      return text;
    }
    String request = field("request_id");
    return text + " (" + code + (request.isEmpty() ? ")" : ", request " + request + ")");
  }
}
