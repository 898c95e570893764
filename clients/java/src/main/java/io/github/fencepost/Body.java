package io.github.fencepost;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/**
 * Reads a whole body, which is bounded, and completes the exchange. It does that here, as the HTTP
 * client hands its own completion over to the common pool, which a program may block. It stops
 * when the exchange has failed.
 */
class Body implements HttpResponse.BodySubscriber<byte[]> {
  private static final int MOST = 16 << 20; // bytes

  private final ByteArrayOutputStream text = new ByteArrayOutputStream();
  private final CompletableFuture<byte[]> whole = new CompletableFuture<>();
  private final CompletableFuture<Answer> exchange;
  private final HttpResponse.ResponseInfo head;
  private Flow.Subscription subscription;

  Body(CompletableFuture<Answer> exchange, HttpResponse.ResponseInfo head) {
    this.exchange = exchange;
    this.head = head;
  }

  @Override
  public CompletionStage<byte[]> getBody() {
    return whole;
  }

  @Override
  public void onSubscribe(Flow.Subscription subscription) {
    this.subscription = subscription;
    exchange.whenComplete((answer, failure) -> {
      if (failure != null) {
        subscription.cancel();
      }
    });
    ask();
  }

  /** Asks for the next buffers. */
  void ask() {
    subscription.request(1);
  }

  @Override
  public void onNext(List<ByteBuffer> buffers) {
    for (ByteBuffer buffer : buffers) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.get(bytes);
      take(bytes);
    }
    ask();
  }

  void take(byte[] bytes) {
    if (text.size() + bytes.length > MOST) {
      stop(new IOException("the answer is too long"));
    } else {
      text.writeBytes(bytes);
    }
  }

  final void stop(Throwable failure) {
    subscription.cancel();
    whole.completeExceptionally(failure);
  }

  @Override
  public void onError(Throwable failure) {
    whole.completeExceptionally(failure); // with which the request fails, and then the exchange
  }

  @Override
  public void onComplete() {
    byte[] bytes = text.toByteArray();
    whole.complete(bytes);
    exchange.complete(new Answer(head.statusCode(), head.headers(), bytes));
  }
}
