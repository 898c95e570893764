package io.github.fencepost;

import com.google.gson.JsonObject;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * One acquire from its first request to its grant, over lost answers, replicas that drain and
 * requests that end before the wait does. One thread at a time makes its steps.
 */
final class Acquisition {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long LONGEST_HOLD = 50 * SECOND; // that a server keeps a request open
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Fencepost client;
  private final Target of;
  private final boolean async; // the servers keep the entry while its client does not ask for it
  private final String callback; // where they report its grant

  private LockOptions options;
  private Reading begun; // when the call began
  private Reading first; // when the key was sent first; null if it was not
  private String key;
  private Entry entry; // once it is known, with its token
  private boolean unknown; // a request may have written an entry whose token is not known
  private boolean leaves; // the call is over, and its entry is taken back

  Acquisition(Fencepost client, Target of, LockOptions options) {
    this(client, of, options, false, "");
  }

  Acquisition(
      Fencepost client, Target of, LockOptions options, boolean async, String callback) {
    this.client = client;
    this.of = of;
    this.options = options;
    this.async = async;
    this.callback = callback;
    begun = client.clock.read();
    restart();
  }

  /** Returns the claim of a grant that a callback reported, which can wait for one TTL. */
  static Acquisition claim(Fencepost client, Target of, Entry granted, LockOptions options) {
    LockOptions claim = options.wait(Duration.ofNanos(granted.ttl)); // 0 if it is adopted
    Acquisition a = new Acquisition(client, of, claim, true, "");
    a.entry = granted;
    return a;
  }

  /** Makes the next request a new entry. */
  private void restart() {
    byte[] random = new byte[18];
    RANDOM.nextBytes(random);
    key = Base64.getUrlEncoder().encodeToString(random);
    first = null;
    entry = Entry.NONE;
    unknown = false;
  }

  String id() {
    return entry.id;
  }

  /** Waits for the grant, and begins to renew it. */
  CompletableFuture<Held> run(Scope scope) {
    return client.repeat(scope, Limit.of(this::left), this::attempt).thenApply(since -> {
      if (scope.cancelled()) {
        throw FencepostException.cancelled("the call was cancelled");
      }
      first = null; // a grant that is waited for again has to be renewed first
      return Held.begin(client, of, entry, options, since, scope.headers);
    });
  }

  /**
   * Makes one request, and a second one where a grant may be old: that is renewed before it counts.
   * It returns when the request was sent from which the lease counts.
   */
  private CompletableFuture<Reading> attempt(Repeat.Attempt at) {
    if (entry.held) {
      return confirm(at);
    }
    return next(at).thenCompose(granted -> confirm(at));
  }

  private CompletableFuture<Reading> confirm(Repeat.Attempt at) {
    if (first != null && elapsed(first) <= ttl() / 3) {
      return CompletableFuture.completedFuture(first);
    }
    Reading sent = client.clock.read();
    return send(at, Request.renewal(of, entry, ttl())).thenApply(renewed -> {
      if (!renewed.held) {
        throw new LockLostException(of.name, LockLostException.NOT_GRANTED);
      }
      return sent;
    });
  }

  private long elapsed(Reading since) {
    return client.clock.read().since(since);
  }

  /** Returns how much of the wait is left. */
  private long waits() {
    return options.waits().toNanos() - elapsed(begun);
  }

  /** Returns how long the call may still take. */
  private long left() {
    return waits() + client.retryFor;
  }

  private long ttl() {
    return entry.ttl > 0 ? entry.ttl : options.ttl().toNanos();
  }

  /**
   * Makes one attempt to acquire, or to go on waiting. If it succeeds, the entry holds, or
   * waits and the call does not.
   */
  CompletableFuture<Entry> next(Repeat.Attempt at) {
    Reading sent = client.clock.read();
    if (first == null) {
      first = sent;
    }
    Request request = request();
    boolean once = leaves || async && request.method.equals("POST");
    return send(at, request).thenApply(answered -> {
      if (answered.held || once) {
        return answered;
      }
      // One that is answered too soon would be sent in a loop.
      throw new Again(FencepostException.noAnswer(null), null)
          .stays().goes(elapsed(sent) >= SECOND);
    });
  }

  /** Returns the request that is due: an acquire until the token is known, then one that waits. */
  private Request request() {
    long hold = Math.min(waits(), LONGEST_HOLD);
    if (!entry.token.isEmpty()) {
      long seconds = wholeSeconds(Math.max(hold, SECOND));
      Request wait =
          new Request("GET", of.entryPath(entry.id) + "?wait_seconds=" + seconds);
      wait.token = entry.token;
      wait.timeout = seconds * SECOND + Request.TIMEOUT;
      return wait;
    }
    Request acquire = new Request("POST", of.path());
    acquire.key = key;
    acquire.body = body();
    if (leaves) { // the token is needed, not the grant
      acquire.prefer = "wait=0";
    }
    acquire.timeout = (async || leaves ? 0 : Math.max(hold, 0)) + Request.TIMEOUT;
    return acquire;
  }

  private JsonObject body() {
    JsonObject body = options.body(of);
    if (async) {
      body.addProperty("async", true);
    }
    if (!callback.isEmpty()) {
      body.addProperty("callback_url", callback);
    }
    return body;
  }

  private static long wholeSeconds(long nanos) {
    return (nanos + SECOND - 1) / SECOND;
  }

  /** Sends a request about the entry, and takes from its answer what that says of the entry. */
  private CompletableFuture<Entry> send(Repeat.Attempt at, Request r) {
    return client.sender.sendForEntry(at, r).handle((answered, failure) -> {
      if (failure != null) {
        throw learn(Repeat.cause(failure));
      }
      entry = answered;
      unknown = false;
      return answered;
    });
  }

  /** Takes from a failure what it says of the entry, and returns what it means for the call. */
  private RuntimeException learn(Throwable failure) {
    if (failure instanceof Again) {
      learn((Again) failure);
      return (Again) failure;
    }
    FencepostException problem = (FencepostException) failure;
    int status = problem.status();
    if (status == 409 || status == 410 || status == 423) {
      unknown = false;
      if (!async) { // of an async entry the servers are asked again
        entry = Entry.NONE; // nothing is left in the queue
      }
    }
    return problem.code().equals("lock_lost") ? ended(problem) : problem;
  }

  /**
   * Takes the entry from the answer of a replica that hands it over. Where there is none, the
   * request may have written one all the same.
   */
  private void learn(Again again) {
    Entry handed = Entry.handedOver(again.body);
    if (handed != null) {
      entry = handed;
      unknown = false;
    } else if (entry.token.isEmpty() && again.problem.status() != 429
        && !again.problem.field("may_have_taken_effect").equals("false")) {
      unknown = true;
    }
  }

  /**
   * Decides what the end of the entry means for the call. If the entry expired because no request
   * reached a server in time, the call acquires again while it may still wait.
   */
  private RuntimeException ended(FencepostException problem) {
    LockLostException lost = LockLostException.of(of.name, problem);
    switch (lost.reason()) {
      case "wait_timeout":
      case "deadlock":
      case "superseded":
      case "mode_mismatch":
        return problem.byReason();
      case "expired":
      case "unknown":
        break;
      default:
        return lost;
    }
    boolean waited = !options.waits().isZero();
    if (async || leaves || waited && waits() <= 0) {
      return lost;
    }
    if (waited) {
      options = options.wait(Duration.ofSeconds(wholeSeconds(waits())));
      begun = client.clock.read();
    }
    restart();
    return new Again(lost, null).stays();
  }

  /**
   * Takes back what a failed call may have left in the queue, for at most one TTL. What it cannot
   * take back expires, one TTL after the last request that waited.
   */
  void leaveLater(Scope call) {
    if (entry.token.isEmpty() && !unknown) {
      return;
    }
    leaves = true;
    client.linger(call.headers, null, this::leave);
  }

  /** Leaves the queue, or releases a grant that was not claimed. */
  CompletableFuture<Void> leave(Scope scope) {
    Limit limit = Limit.within(client.clock, ttl());
    return client.repeat(scope, limit, this::tryToLeave).handle(Acquisition::left);
  }

  /** That nothing is left is a success. */
  private static Void left(Answer answer, Throwable failure) {
    if (failure == null || isLost(Repeat.cause(failure))) {
      return null;
    }
    throw (RuntimeException) Repeat.cause(failure);
  }

  static boolean isLost(Throwable failure) {
    return failure instanceof FencepostException
        && ((FencepostException) failure).code().equals("lock_lost");
  }

  /**
   * Makes one attempt to release the entry. If its token is not known, the acquire is repeated
   * first: the same key is the same entry.
   */
  private CompletableFuture<Answer> tryToLeave(Repeat.Attempt at) {
    if (entry.token.isEmpty()) {
      return next(at).thenCompose(found -> release(at));
    }
    return release(at);
  }

  private CompletableFuture<Answer> release(Repeat.Attempt at) {
    return client.sender.send(at, Request.release(of, entry));
  }
}
