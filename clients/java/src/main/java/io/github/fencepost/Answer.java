package io.github.fencepost;

import com.google.gson.JsonObject;
import java.net.http.HttpHeaders;
import java.time.Duration;

/** What a server, or a proxy in front of it, sent. */
final class Answer {
  final int status;
  final Duration retryAfter; // servers of Fencepost send seconds, and no dates
  final JsonObject body; // null if that is no JSON object

  Answer(int status, HttpHeaders headers, byte[] text) {
    this.status = status;
    retryAfter =
        headers.firstValue("Retry-After")
            .filter(value -> value.matches("[0-9]{1,18}"))
            .map(value -> Duration.ofSeconds(Math.min(Long.parseLong(value), Integer.MAX_VALUE)))
            .orElse(Duration.ZERO);
    body = text.length == 0 ? null : Json.object(text);
  }

  /** Throws what a refusal means: another attempt may succeed, or none. */
  Answer orRefusal() {
    if (status < 300) {
      return this;
    }
    FencepostException problem = FencepostException.of(Problem.of(this));
    if (status == 429 && !retryAfter.isZero()) {
      throw new Again(problem, body).after(retryAfter.toNanos()).stays();
    } else if (status >= 500) {
      throw new Again(problem, body).after(retryAfter.toNanos());
    }
    throw problem;
  }
}
