package io.github.fencepost;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** Sends requests, each once. */
final class Sender {
  /** Before 16, cancelling an exchange leaves its connection open: a timeout of its own ends it. */
  private static final boolean CANCELS = Runtime.version().feature() >= 16;

  private final HttpClient http;
  private final Clock clock;
  private final Supplier<CompletableFuture<String>> bearer;

  Sender(HttpClient http, Clock clock, Supplier<CompletableFuture<String>> bearer) {
    this.http = http;
    this.clock = clock;
    this.bearer = bearer;
  }

  /** Makes one attempt. It fails with what to do next: {@link Again}, or nothing any more. */
  CompletableFuture<Answer> send(Repeat.Attempt at, Request r) {
    CompletableFuture<Answer> exchange = new CompletableFuture<>();
    long timeout = Math.min(r.timeout, at.limit.left());
    Runnable timer = clock.after(timeout, () ->
        exchange.completeExceptionally(new HttpTimeoutException("the attempt took too long")));
    exchange.whenComplete((answer, failure) -> timer.run());
    open(at, r, exchange, head -> new Body(exchange, head));
    return exchange.handle((answer, failure) -> answer(at, answer, failure));
  }

  /** Makes one attempt whose answer has to be an entry. */
  CompletableFuture<Entry> sendForEntry(Repeat.Attempt at, Request r) {
    return send(at, r).thenApply(answer -> {
      Entry entry = Entry.of(answer.body);
      if (entry == null) {
        IOException why = new IOException("the answer is no entry");
        throw new Again(FencepostException.noAnswer(at.base, why), null);
      }
      return entry;
    });
  }

  /** What failed before anything was sent would fail again. */
  static Answer answer(Repeat.Attempt at, Answer answer, Throwable failure) {
    if (failure instanceof FencepostException) {
      throw (FencepostException) failure;
    } else if (failure instanceof IllegalArgumentException) { // its message may show a header
      throw FencepostException.invalid("the HTTP library does not send this request");
    } else if (failure != null) {
      throw new Again(FencepostException.noAnswer(at.base, failure), null);
    }
    return answer.orRefusal();
  }

  /** Sends a request. The exchange is completed by its answer, or by what ends it before. */
  void open(
      Repeat.Attempt at, Request r, CompletableFuture<Answer> exchange,
      HttpResponse.BodyHandler<byte[]> handler) {
    at.scope.step(() -> exchange.completeExceptionally(new CancellationException()));
    bearer.get().whenComplete((token, failure) -> {
      if (failure != null) {
        exchange.completeExceptionally(Repeat.cause(failure));
      } else if (!exchange.isDone()) {
        transmit(at, r, token, exchange, handler);
      }
    });
  }

  private void transmit(
      Repeat.Attempt at, Request r, String token, CompletableFuture<Answer> exchange,
      HttpResponse.BodyHandler<byte[]> handler) {
    try {
      HttpRequest request = request(at, r, token);
      if (at.scope.mayBlock()) {
        transmitHere(request, exchange, handler);
      } else {
        transmit(request, exchange, handler);
      }
    } catch (RuntimeException | Error e) { // such as a header of the caller that is not valid
      exchange.completeExceptionally(e);
    }
  }

  /**
   * Sends a request on the thread of the call, which takes half of the processor time. What fails
   * the exchange interrupts it.
   */
  private void transmitHere(
      HttpRequest request, CompletableFuture<Answer> exchange,
      HttpResponse.BodyHandler<byte[]> handler) {
    Blocked blocked = new Blocked();
    exchange.whenComplete((answer, failure) -> {
      if (failure != null) {
        blocked.wake();
      }
    });
    Exception failure = null;
    try {
      http.send(request, handler);
    } catch (IOException | InterruptedException | RuntimeException e) {
      failure = e;
    }
    boolean woken = blocked.end();
    if (failure instanceof InterruptedException && !woken) {
      Thread.currentThread().interrupt(); // the call sees it when it waits
    }
    if (failure != null) { // otherwise the body has completed the exchange
      exchange.completeExceptionally(failure);
    }
  }

  private void transmit(
      HttpRequest request, CompletableFuture<Answer> exchange,
      HttpResponse.BodyHandler<byte[]> handler) {
    CompletableFuture<HttpResponse<byte[]>> sent = http.sendAsync(request, handler);
    exchange.whenComplete((answer, failure) -> {
      if (failure != null) {
        sent.cancel(true);
      }
    });
    sent.whenComplete((response, failure) -> {
      if (failure != null) { // otherwise the body has completed the exchange
        exchange.completeExceptionally(Repeat.cause(failure));
      }
    });
  }

  private HttpRequest request(Repeat.Attempt at, Request r, String bearer) {
    // Streams of HTTP/2 would share a connection, with a bound: waits could delay renewals.
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(at.base + r.path))
        .version(HttpClient.Version.HTTP_1_1);
    at.scope.headers.forEach((name, value) -> {
      try {
        request.setHeader(name, value);
      } catch (IllegalArgumentException e) { // whose message may show the value
        throw FencepostException.invalid("the header " + name + " cannot be sent");
      }
    });
    request.setHeader("Authorization", "Bearer " + bearer);
    add(request, "Lock-Token", r.token);
    add(request, "Idempotency-Key", r.key);
    add(request, "Prefer", r.prefer);
    add(request, "Last-Event-ID", r.after);
    if (!CANCELS) {
      request.timeout(Duration.ofNanos(r.timeout));
    }
    if (r.body == null) {
      return request.method(r.method, HttpRequest.BodyPublishers.noBody()).build();
    }
    request.setHeader("Content-Type", "application/json");
    return request
        .method(r.method, HttpRequest.BodyPublishers.ofString(r.body.toString())).build();
  }

  private static void add(HttpRequest.Builder request, String name, String value) {
    if (!value.isEmpty()) {
      request.setHeader(name, value);
    }
  }
}
