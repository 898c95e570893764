package io.github.fencepost;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What happens to the tenant's locks. A stream that is cut resumes where it was, at another URL if
 * there is one, for as long as it takes. An event of the type {@code events.missed} says that some
 * are unknown: list the locks then. One thread at a time may use it; another may close it.
 */
public final class Events implements Iterator<Event>, AutoCloseable {
  private static final long PAUSE = TimeUnit.SECONDS.toNanos(1); // after a stream that ended

  private final Fencepost client;
  private final Scope scope;
  private final String path;
  private final CompletableFuture<Void> end;

  private final Queue<Event> ready = new ArrayDeque<>();
  private CompletableFuture<Void> more = new CompletableFuture<>();
  private EventStream stream; // under way, or null
  private String after; // the last id
  private volatile boolean closed;

  Events(Fencepost client, Scope scope, EventFilter filter) {
    this.client = client;
    this.scope = scope;
    path = filter.path();
    after = filter.after();
    end = client.repeat(scope, Limit.of(() -> Long.MAX_VALUE), this::follow);
    end.whenComplete((nothing, failure) -> {
      client.calls.end(scope);
      wake();
    });
  }

  /** Reads one connection until it ends, which is never for good. */
  private CompletableFuture<Void> follow(Repeat.Attempt at) {
    CompletableFuture<Answer> exchange = new CompletableFuture<>();
    Runnable silent = EventStream.silent(client.clock, exchange);
    exchange.whenComplete((answer, failure) -> silent.run());
    Request r = new Request("GET", path);
    r.timeout = Long.MAX_VALUE;
    synchronized (this) {
      r.after = after;
    }
    AtomicBoolean begun = new AtomicBoolean();
    client.sender.open(at, r, exchange, head -> {
      if (head.statusCode() != 200) {
        return new Body(exchange, head);
      }
      silent.run();
      begun.set(true);
      return begin(new EventStream(this, client.clock, exchange, head));
    });
    return exchange.handle((answer, failure) -> {
      if (!begun.get()) {
        Sender.answer(at, answer, failure); // which throws, as there was no stream
      }
      throw new Again(FencepostException.noAnswer(failure), null).after(PAUSE).usual();
    });
  }

  private synchronized EventStream begin(EventStream reads) {
    stream = reads;
    return reads;
  }

  /** Takes a message of the stream. */
  void deliver(String id, Event event) {
    synchronized (this) {
      after = id.isEmpty() ? after : id;
      if (event == null) {
        return;
      }
      ready.add(event);
    }
    wake();
  }

  private void wake() {
    CompletableFuture<Void> waiting;
    synchronized (this) {
      waiting = more;
    }
    waiting.complete(null);
  }

  synchronized boolean wantMore() {
    return ready.isEmpty();
  }

  /**
   * Waits for the next event. It returns false after {@link #close}.
   *
   * @throws FencepostException if a server refuses for good, or the thread is interrupted
   */
  @Override
  public boolean hasNext() {
    for (;;) {
      CompletableFuture<Void> waiting;
      EventStream reads;
      synchronized (this) {
        if (!ready.isEmpty()) {
          return true;
        }
        if (more.isDone()) {
          more = new CompletableFuture<>();
        }
        waiting = more;
        reads = stream;
      }
      if (end.isDone()) {
        return over();
      }
      if (reads != null) {
        reads.ask();
      }
      client.await(scope, waiting);
    }
  }

  /** Returns false if the events were closed, and otherwise throws why they ended. */
  private boolean over() {
    return !closed && client.await(scope, end.thenApply(nothing -> true));
  }

  @Override
  public Event next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    synchronized (this) {
      return ready.remove();
    }
  }

  @Override
  public void close() {
    closed = true;
    scope.cancel();
  }
}
