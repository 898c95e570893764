package io.github.fencepost;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;

/**
 * Reads one stream of server-sent events. It asks for more when the reader has taken all, so that a
 * slow reader slows the server.
 */
final class EventStream extends Body {
  private static final long IDLE = TimeUnit.SECONDS.toNanos(45); // a server sends every 15 s
  private static final int LONGEST = 1 << 20; // bytes of a line

  private final Events events;
  private final Clock clock;
  private final CompletableFuture<Answer> exchange;
  private final ByteArrayOutputStream line = new ByteArrayOutputStream();

  private Runnable idle = () -> {}; // cancels the timer of a silent server
  private boolean asked = true; // for the next buffers; there is no subscription yet
  private String id = "";
  private final StringBuilder data = new StringBuilder();

  EventStream(
      Events events, Clock clock, CompletableFuture<Answer> exchange,
      HttpResponse.ResponseInfo head) {
    super(exchange, head);
    this.events = events;
    this.clock = clock;
    this.exchange = exchange;
    exchange.whenComplete((answer, failure) -> rest());
  }

  /** Ends an exchange if nothing comes for long. Returns what cancels that. */
  static Runnable silent(Clock clock, CompletableFuture<?> exchange) {
    return clock.after(IDLE, () ->
        exchange.completeExceptionally(new IOException("the stream is silent")));
  }

  private synchronized void rest() {
    idle.run();
  }

  @Override
  public void onSubscribe(Flow.Subscription subscription) {
    synchronized (this) {
      asked = false;
    }
    super.onSubscribe(subscription);
  }

  @Override
  void ask() {
    synchronized (this) {
      if (asked || exchange.isDone() || !events.wantMore()) {
        return;
      }
      asked = true;
      idle.run();
      idle = silent(clock, exchange);
    }
    super.ask();
  }

  @Override
  public void onNext(List<ByteBuffer> buffers) {
    synchronized (this) {
      asked = false;
      idle.run();
    }
    super.onNext(buffers);
  }

  @Override
  void take(byte[] bytes) {
    for (byte b : bytes) {
      if (b == '\n') {
        takeLine(line.toString(StandardCharsets.UTF_8));
        line.reset();
      } else if (line.size() < LONGEST) {
        line.write(b);
      } else {
        stop(new IOException("the line of an event is too long"));
      }
    }
  }

  private void takeLine(String text) {
    String line = text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
    if (line.isEmpty()) {
      deliver();
      return;
    }
    int colon = line.indexOf(':');
    String name = colon < 0 ? line : line.substring(0, colon);
    String value = colon < 0 ? "" : line.substring(colon + 1);
    value = value.startsWith(" ") ? value.substring(1) : value;
    if (name.equals("id")) {
      id = value;
    } else if (name.equals("data")) {
      data.append(data.length() == 0 ? "" : "\n").append(value);
    }
    if (data.length() > LONGEST) {
      stop(new IOException("an event is too long"));
    }
  }

  /** Hands over the message, which may have an id and no event. */
  private void deliver() {
    String text = data.toString();
    Event event = text.isEmpty() ? null : Event.parse(text.getBytes(StandardCharsets.UTF_8));
    if (event == null && !text.isEmpty()) {
      stop(new IOException("a message is no event"));
      return;
    }
    events.deliver(id, event);
    id = "";
    data.setLength(0);
  }
}
