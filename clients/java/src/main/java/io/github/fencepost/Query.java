package io.github.fencepost;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** A path with the parameters of its query that are not empty. */
final class Query {
  private final String text;

  private Query(String text) {
    this.text = text;
  }

  static Query of(String path) {
    return new Query(path);
  }

  Query with(String name, String value) {
    if (value.isEmpty()) {
      return this;
    }
    String parameter = name + "=" + URLEncoder.encode(value, StandardCharsets.UTF_8);
    return new Query(text + (text.indexOf('?') < 0 ? '?' : '&') + parameter);
  }

  @Override
  public String toString() {
    return text;
  }
}
