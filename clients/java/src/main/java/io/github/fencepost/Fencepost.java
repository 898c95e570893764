package io.github.fencepost;

import com.google.gson.JsonObject;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Acquires locks. Many threads may call its methods at once; virtual threads may, too.
 *
 * <pre>{@code
 * try (Fencepost fencepost = new Fencepost(url, token);
 *     Held held = fencepost.lock("orders:42", LockOptions.ttl(Duration.ofSeconds(30)))) {
 *   update("UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?",
 *       balance, held.fence(), id, held.fence());
 * }
 * }</pre>
 *
 * <p>A lease is no guarantee: a process can stop between any check and its write. So the resource
 * that is written compares the fence, as above, and the lock keeps others from the work meanwhile.
 *
 * <p>Errors are a {@link FencepostException} with the code of the server's problem, or a {@link
 * LockLostException}. An interrupt ends a call that waits with {@link
 * FencepostException.Cancelled}, and the thread stays interrupted; the client then leaves the queue
 * in the background.
 */
public final class Fencepost implements AutoCloseable {
  final Clock clock;
  final Sender sender;
  final Calls calls = new Calls();
  final Watch watch;
  final long retryFor;
  private final Replicas replicas;
  private final Supplier<Map<String, String>> headers;

  /**
   * Returns a client for one address. It sends no request.
   *
   * @param url of a replica, or of what balances requests over them; several with commas
   * @param token of the bearer
   * @throws IllegalArgumentException if one is missing or cannot be sent
   */
  public Fencepost(String url, String token) {
    this(builder(url).token(token));
  }

  private Fencepost(Builder from) {
    clock = from.clock;
    watch = new Watch(clock);
    replicas = new Replicas(from.urls, clock);
    retryFor = from.retryFor.toNanos();
    headers = from.headers;
    sender = new Sender(from.http(), clock, from.bearer());
  }

  /**
   * Begins to build a client.
   *
   * @param urls of replicas: the client uses one of them until it fails, then the next
   * @return the builder
   * @throws IllegalArgumentException if one is no base URL
   */
  public static Builder builder(String... urls) {
    return new Builder(urls);
  }

  /**
   * Acquires an exclusive lock with a TTL of 30 s. It waits up to a minute.
   *
   * @param name of the lock
   * @return the held lock
   */
  public Held lock(String name) {
    return lock(name, LockOptions.defaults());
  }

  /**
   * Acquires a lock, and renews it until it is closed.
   *
   * @param name of the lock
   * @param options of the acquire
   * @return the held lock
   * @throws FencepostException such as {@link FencepostException.WaitTimeout}
   * @throws LockLostException if an operator revoked the entry
   */
  public Held lock(String name, LockOptions options) {
    return acquire(Target.of(name), options);
  }

  /**
   * Acquires a lock if it is free now.
   *
   * @param name of the lock
   * @param options of the acquire; it does not wait
   * @return the held lock
   * @throws FencepostException.LockHeld if it is not free
   */
  public Held tryLock(String name, LockOptions options) {
    return acquire(Target.of(name), options.wait(Duration.ZERO));
  }

  /**
   * Acquires all locks at once, or none. The order of claims does not matter.
   *
   * @param claims of the locks
   * @param options of the acquire
   * @return the held set
   */
  public Held lockSet(List<Claim> claims, LockOptions options) {
    return acquire(Target.of(claims), options);
  }

  /**
   * Acquires all locks if they are free now.
   *
   * @param claims of the locks
   * @param options of the acquire; it does not wait
   * @return the held set
   * @throws FencepostException.LockHeld if one is not free
   */
  public Held tryLockSet(List<Claim> claims, LockOptions options) {
    return acquire(Target.of(claims), options.wait(Duration.ZERO));
  }

  /**
   * Acquires any of the locks: those that are free first, and of these the first in the list. It
   * waits in all their queues. {@link Held#fences} has those that were granted.
   *
   * @param claims of the locks
   * @param k how many of them
   * @param options of the acquire
   * @return the held set of k locks
   */
  public Held lockAny(List<Claim> claims, int k, LockOptions options) {
    return acquire(Target.any(claims, k), options);
  }

  /**
   * Acquires any of the locks that are free now.
   *
   * @param claims of the locks
   * @param k how many of them
   * @param options of the acquire; it does not wait
   * @return the held set of k locks
   * @throws FencepostException.LockHeld if fewer are free
   */
  public Held tryLockAny(List<Claim> claims, int k, LockOptions options) {
    return acquire(Target.any(claims, k), options.wait(Duration.ZERO));
  }

  private Held acquire(Target of, LockOptions options) {
    Acquisition acquisition = new Acquisition(this, of, options);
    return call(acquisition::run, acquisition::leaveLater);
  }

  /**
   * Queues for a lock and returns at once; the lock may also be granted at once. If it fails, the
   * client takes back in the background what it may have left in the queue.
   *
   * @param name of the lock
   * @param options of the acquire; the TTL is at least 15 s
   * @param callbackUrl is where the servers report the grant, or the end of the entry; may be empty
   * @return the entry
   */
  public Pending asyncAcquire(String name, LockOptions options, String callbackUrl) {
    Acquisition a = new Acquisition(this, Target.of(name), options, true, callbackUrl);
    call(scope -> repeat(scope, Limit.within(clock, retryFor), a::next), a::leaveLater);
    return new Pending(this, a);
  }

  /**
   * Takes the grant that a callback reported, see {@link Webhooks#verify}, and renews the lock from
   * then on. A callback may come twice: skip an event whose id you have seen, because two claims of
   * one grant would both count as its holder.
   *
   * @param event of the callback
   * @param options only the margin and the listener count
   * @return the held lock
   * @throws LockLostException if the lock has another holder by now, or the event is no grant
   */
  public Held claim(Event event, LockOptions options) {
    Target of = Target.of(event.lock());
    if (event.lock().isEmpty() && !event.locks().isEmpty()) {
      List<Claim> claims = new ArrayList<>();
      event.locks().forEach(name -> claims.add(Claim.exclusive(name)));
      of = Target.of(claims);
    }
    Entry granted = event.grant();
    if (granted == null) {
      throw new LockLostException(of.name, LockLostException.NOT_GRANTED);
    }
    return call(Acquisition.claim(this, of, granted, options)::run);
  }

  /**
   * Takes over a lock that another process holds, and renews it from then on. That process hands
   * over what {@link Held#token} returns, closes its client, and does not release the lock. A
   * failed adoption releases nothing.
   *
   * @param name of the lock; a set cannot be adopted
   * @param options only the margin and the listener count
   * @param token of the lock
   * @return the held lock
   * @throws LockLostException if the lock has another holder by now, or the entry still waits
   */
  public Held adopt(String name, LockOptions options, String token) {
    if (!isSendable(token.strip())) {
      throw FencepostException.invalid("the token of the lock is empty or has other characters");
    }
    Entry adopted = Entry.adopted(token.strip());
    return call(Acquisition.claim(this, Target.of(name), adopted, options)::run);
  }

  private static boolean isSendable(String token) {
    return !token.isEmpty() && token.chars().allMatch(c -> c > ' ' && c <= '~');
  }

  /**
   * Campaigns for a lock and runs work while this process is the leader. The term is the fence: it
   * grows from each leader to the next, and a resource that compares it rejects writes of earlier
   * leaders. When the lock is lost, the client interrupts the thread of the work. The work has to
   * end then, its exception does not count, and the client campaigns again. If work ends while the
   * lock is held, the client resigns, and lead ends as the work did.
   *
   * <p>Lead goes on until the thread is interrupted, also while no server answers. Other errors of
   * the acquire, such as forbidden, end it.
   *
   * @param <E> what the work throws
   * @param name of the lock
   * @param options of the acquire
   * @param work of the leader
   * @throws E what the work throws
   */
  public <E extends Exception> void lead(String name, LockOptions options, Work<E> work)
      throws E {
    new Campaign(this, name, options).run(work);
  }

  /**
   * What a leader does.
   *
   * @param <E> what it throws
   */
  @FunctionalInterface
  public interface Work<E extends Exception> {
    /**
     * Runs while the lock is held.
     *
     * @param held is the lock; its fence is the term
     * @throws E as it likes
     */
    void run(Held held) throws E;
  }

  /**
   * Returns a lock with its holders and waiters. A free lock has none.
   *
   * @param name of the lock
   * @return the lock
   */
  public LockInfo look(String name) {
    return new LockInfo(get(Target.pathOf(name)));
  }

  /**
   * Lists the locks that are in use, in byte order. The iterator gets a page when it needs it.
   *
   * @param filter of the locks
   * @return the locks
   */
  public Iterable<LockInfo> list(LockFilter filter) {
    return () -> new Pages(this, filter.query());
  }

  /**
   * Follows events. Close them when you need no more.
   *
   * @param filter of the events
   * @return the events
   */
  public Events events(EventFilter filter) {
    return new Events(this, begin(null), filter);
  }

  /**
   * Reports a write that a resource rejected. Operators see the report.
   *
   * @param write that was rejected
   */
  public void staleWrite(StaleWrite write) {
    Request report = new Request("POST", Target.pathOf(write.lock()) + "/stale-writes");
    report.body = new JsonObject();
    report.body.addProperty("fence_presented", write.presented());
    report.body.addProperty("fence_known", write.known());
    report.body.addProperty("resource", write.resource());
    call(scope -> ask(scope, report));
  }

  /**
   * Stops the renewal of all locks that the client still holds: they are lost with the reason
   * closed. It does not release them: they expire with their TTL. It cancels calls, and waits up to
   * 2 s until they have left their queues. Threads of the client end some seconds later.
   */
  @Override
  public void close() {
    watch.close().forEach(held ->
        held.end(new LockLostException(held.name(), LockLostException.CLOSED)));
    boolean interrupted = Thread.interrupted(); // its wait leaves the queue first
    awaitOrLeave(calls.close(clock));
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  JsonObject get(String path) {
    return call(scope -> ask(scope, new Request("GET", path)).thenApply(answer -> {
      if (answer.body == null) {
        throw FencepostException.noAnswer(null);
      }
      return answer.body;
    }));
  }

  private CompletableFuture<Answer> ask(Scope scope, Request r) {
    return repeat(scope, Limit.within(clock, retryFor), at -> sender.send(at, r));
  }

  <T> CompletableFuture<T> repeat(
      Scope scope, Limit limit, Function<Repeat.Attempt, CompletableFuture<T>> attempt) {
    return new Repeat<>(clock, replicas, scope, limit, attempt).run();
  }

  private Scope begin(Thread caller) {
    Scope scope = new Scope(headers.get(), caller);
    if (Thread.currentThread().isInterrupted()) {
      throw FencepostException.cancelled("the thread is interrupted");
    } else if (!calls.begin(scope)) {
      throw FencepostException.cancelled("the client is closed");
    }
    return scope;
  }

  <T> T call(Function<Scope, CompletableFuture<T>> run) {
    return call(run, scope -> {});
  }

  /** Runs a call, and waits until it is over. */
  private <T> T call(
      Function<Scope, CompletableFuture<T>> run, Consumer<Scope> failed) {
    Scope scope = begin(Thread.currentThread());
    try {
      return await(scope, run.apply(scope));
    } catch (RuntimeException | Error e) {
      failed.accept(scope);
      throw e;
    } finally {
      calls.end(scope);
    }
  }

  /** Runs what a call leaves behind, in the background if the caller is null. */
  <T> CompletableFuture<T> linger(
      Map<String, String> headers, Thread caller, Function<Scope, CompletableFuture<T>> run) {
    Scope scope = new Scope(headers, caller);
    calls.linger(scope);
    return run.apply(scope).whenComplete((value, failure) -> calls.end(scope));
  }

  /** Waits until the future is done. An interrupt cancels the scope, which ends it. */
  <T> T await(Scope scope, CompletableFuture<T> future) {
    boolean interrupted = false;
    for (;;) {
      try {
        return clock.await(future);
      } catch (InterruptedException e) {
        interrupted = true;
        scope.cancel();
      } catch (ExecutionException e) {
        throw thrown(e.getCause());
      } finally {
        if (interrupted && future.isDone()) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  /** Waits until the future is done, or the thread is interrupted. */
  void awaitOrLeave(CompletableFuture<Void> future) {
    try {
      clock.await(future);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException e) {
      throw thrown(e.getCause());
    }
  }

  /** Returns an exception whose trace is that of the call, not of a thread of the client. */
  private static RuntimeException thrown(Throwable failure) {
    if (failure instanceof Error) {
      throw (Error) failure;
    }
    failure.fillInStackTrace();
    return (RuntimeException) failure;
  }

  /** Says how to reach a deployment of Fencepost. */
  public static final class Builder {
    private static final String UNSENDABLE = "the bearer token is empty or has other characters";

    private final List<String> urls;
    private Supplier<String> token;
    private boolean fixed; // the token does not change
    private HttpClient http;
    private Supplier<Map<String, String>> headers = Map::of;
    private Duration retryFor = Duration.ofSeconds(30);
    private Clock clock = new SystemClock();

    private Builder(String... urls) {
      this.urls = Replicas.bases(urls);
    }

    /**
     * Sends a bearer token that does not change.
     *
     * @param bearer the token
     * @return this
     */
    public Builder token(String bearer) {
      token(() -> bearer);
      fixed = true;
      return this;
    }

    /**
     * Sends the bearer token that a function returns for each request. If it throws, the request
     * has no answer, and the client tries again; a token that cannot be sent is an error.
     *
     * @param bearer returns the token; it may block
     * @return this
     */
    public Builder token(Supplier<String> bearer) {
      token = bearer;
      fixed = false;
      return this;
    }

    /**
     * Sends requests by a client of yours, such as one with a proxy or a certificate, with
     * HTTP/1.1: an attempt that hangs then costs its own connection, and no other request uses
     * that. By default the client has its own, with the proxy of the environment.
     *
     * @param client sends the requests; one that follows redirects would carry secrets elsewhere
     * @return this
     */
    public Builder http(HttpClient client) {
      if (client.followRedirects() != HttpClient.Redirect.NEVER) {
        throw new IllegalArgumentException("a client must not follow redirects");
      }
      http = client;
      return this;
    }

    /**
     * Adds headers to the requests of a call, such as the traceparent of the caller. The client
     * calls the function on the caller's thread, once for each call; a held lock keeps them.
     *
     * @param caller returns the headers
     * @return this
     */
    public Builder headers(Supplier<Map<String, String>> caller) {
      headers = caller;
      return this;
    }

    /**
     * Says how long a call repeats a request that the servers do not answer, or refuse for now,
     * beyond the time that it waits for a lock. 30 s by default. The limit of a held lock is its
     * deadline instead.
     *
     * @param limit of the retries
     * @return this
     */
    public Builder retryFor(Duration limit) {
      retryFor = LockOptions.checked("retryFor", limit);
      return this;
    }

    Builder clock(Clock other) {
      clock = other;
      return this;
    }

    /**
     * Returns the client. It sends no request.
     *
     * @return the client
     */
    public Fencepost build() {
      if (token == null) {
        throw new IllegalStateException("there is no bearer token");
      }
      return new Fencepost(this);
    }

    private HttpClient http() {
      if (http != null) {
        return http;
      }
      return HttpClient.newBuilder()
          .version(HttpClient.Version.HTTP_1_1)
          .connectTimeout(Duration.ofNanos(Request.TIMEOUT))
          .executor(clock::execute)
          .proxy(new Proxies(System.getenv()))
          .build();
    }

    /** Returns what gets the token: at once, or on a thread that the function may block. */
    private Supplier<CompletableFuture<String>> bearer() {
      if (fixed) {
        String text = token.get() == null ? "" : token.get().strip();
        if (!isSendable(text)) {
          throw new IllegalArgumentException(
              UNSENDABLE + (text.isEmpty() ? ": is FENCEPOST_TOKEN set?" : ""));
        }
        CompletableFuture<String> known = CompletableFuture.completedFuture(text);
        return () -> known;
      }
      return () -> CompletableFuture.supplyAsync(this::ask, clock::execute);
    }

    /** Rejects what no header may have. The error of the HTTP library would show the token. */
    private String ask() {
      String bearer;
      try {
        bearer = token.get();
      } catch (RuntimeException e) { // which is tried again
        throw new IllegalStateException("the function for the bearer token failed", e);
      }
      if (bearer == null || !isSendable(bearer.strip())) {
        throw FencepostException.invalid(UNSENDABLE);
      }
      return bearer.strip();
    }
  }
}
