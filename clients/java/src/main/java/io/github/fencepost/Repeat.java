package io.github.fencepost;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/**
 * Makes attempts until one succeeds or fails for good, or the limit has come. After a failure the
 * next attempt is at the next URL at once; after all have failed, after a pause.
 */
final class Repeat<T> {
  /** One attempt: where it goes, and what bounds it. */
  static final class Attempt {
    final Scope scope;
    final Limit limit;
    final String base;

    Attempt(Scope scope, Limit limit, String base) {
      this.scope = scope;
      this.limit = limit;
      this.base = base;
    }
  }

  private final Clock clock;
  private final Replicas replicas; // shared by all calls
  private final Scope scope;
  private final Limit limit;
  private final Function<Attempt, CompletableFuture<T>> attempt;
  private final CompletableFuture<T> result = new CompletableFuture<>();

  private int failures;
  private int pauses;
  private FencepostException last = FencepostException.noAnswer(new TimeoutException());

  Repeat(
      Clock clock, Replicas replicas, Scope scope, Limit limit,
      Function<Attempt, CompletableFuture<T>> attempt) {
    this.clock = clock;
    this.replicas = replicas;
    this.scope = scope;
    this.limit = limit;
    this.attempt = attempt;
  }

  CompletableFuture<T> run() {
    result.whenComplete((value, failure) -> scope.rest());
    next();
    return result;
  }

  private void next() {
    int at = replicas.current();
    if (limit.left() <= 0) {
      result.completeExceptionally(last);
      return;
    }
    CompletableFuture<T> made;
    try {
      made = attempt.apply(new Attempt(scope, limit, replicas.urls.get(at)));
    } catch (RuntimeException | Error e) { // such as a thread that cannot be started
      made = CompletableFuture.failedFuture(e);
    }
    made.whenComplete((value, failure) -> decide(at, value, cause(failure)));
  }

  /** Returns what a future failed with, or null. */
  static Throwable cause(Throwable failure) {
    return failure instanceof CompletionException ? failure.getCause() : failure;
  }

  private void decide(int at, T value, Throwable failure) {
    if (answered(failure)) {
      replicas.answered();
    }
    if (failure == null) {
      result.complete(value);
    } else if (scope.cancelled()) {
      result.completeExceptionally(FencepostException.cancelled("the call was cancelled"));
    } else if (!(failure instanceof Again)) {
      result.completeExceptionally(failure);
    } else if (((Again) failure).goes) {
      failures = pauses = 0;
      next();
    } else {
      retry(at, (Again) failure);
    }
  }

  /** Reports whether a server answered, and not that it fails. */
  private static boolean answered(Throwable failure) {
    if (failure instanceof Again) {
      return ((Again) failure).stays || ((Again) failure).usual;
    }
    return failure == null
        || failure instanceof FencepostException && ((FencepostException) failure).status() > 0;
  }

  private void retry(int at, Again again) {
    last = again.problem;
    if (!again.stays) {
      replicas.fail(at, again);
      if (++failures % replicas.urls.size() != 0) {
        next();
        return;
      }
    }
    long pause = limit.pause(again.after, pauses++);
    if (pause >= limit.left()) {
      result.completeExceptionally(last);
    } else {
      sleep(pause);
    }
  }

  private void sleep(long pause) {
    AtomicBoolean over = new AtomicBoolean(); // the timer and a cancel may come together
    AtomicReference<Runnable> timer = new AtomicReference<>(() -> {});
    scope.step(() -> {
      if (over.compareAndSet(false, true)) {
        timer.get().run();
        result.completeExceptionally(FencepostException.cancelled("the call was cancelled"));
      }
    });
    timer.set(clock.after(pause, () -> {
      if (over.compareAndSet(false, true)) {
        next();
      }
    }));
  }
}
