package io.github.fencepost;

import com.google.gson.JsonObject;

/** Why an attempt failed after which another one may succeed. */
@SuppressWarnings("serial") // it leaves no call
final class Again extends RuntimeException {
  final FencepostException problem;
  final transient JsonObject body; // of the answer, or null
  long after; // nanoseconds before the next one; 0 is as the client likes
  boolean stays; // at this URL: the server works, and refuses
  boolean usual; // no reason for a warning
  boolean goes; // nothing failed: the next attempt is due now

  Again(FencepostException problem, JsonObject body) {
    super(null, problem, false, false);
    this.problem = problem;
    this.body = body;
  }

  Again after(long nanos) {
    after = nanos;
    return this;
  }

  Again stays() {
    stays = true;
    return this;
  }

  Again usual() {
    usual = true;
    return this;
  }

  Again goes(boolean now) {
    goes = now;
    return this;
  }
}
