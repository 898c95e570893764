package io.github.fencepost;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;

/**
 * A lock, or a set of locks, that this process holds. It is renewed in the background until it is
 * closed, or until it is lost. Many threads may call its methods at once.
 *
 * <p>The lock counts as lost one margin before its lease can end: the lease counts from when the
 * last successful request was sent. Work that calls {@link #check}, or listens by {@link #onLost},
 * or is interrupted by {@link #interruptOnLost}, has stopped by then. A process can stop between
 * any check and a write, so the resource that is written has to compare the fence.
 */
public final class Held implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(Held.class.getPackageName());
  private static final FencepostException RELEASED =
      FencepostException.of("released", "the lock is released");

  private final Fencepost client;
  private final Target of;
  private final Entry entry;
  private final LockOptions options;
  private final Scope life; // of renewals, which the end of the call does not end
  private final Reading granted;

  // These belong to the monitor of this. The clock is read outside of it.
  private Reading since; // when the last successful request was sent
  private long ttl; // that it was answered
  private FencepostException failure; // of the newest renewal; null if it succeeded
  private FencepostException ended; // why it is not held any more
  private Runnable renewal = () -> {}; // these cancel timers
  private Runnable expiry = () -> {};
  private Runnable rest = () -> {};
  private boolean rests; // the work is over, and the lock is kept for its least time
  private boolean renews; // a renewal is under way
  private ReleaseRequested asked; // that was reported last
  private List<Consumer<LockLostException>> listeners = List.of();
  private Thread worker; // that is interrupted by a loss
  private boolean interrupted; // the worker was

  private Held(
      Fencepost client, Target of, Entry entry, LockOptions options, Reading since,
      Map<String, String> headers) {
    this.client = client;
    this.of = of.kept(entry.fences.keySet());
    this.entry = entry;
    this.since = since;
    this.options = options;
    ttl = entry.ttl;
    life = new Scope(headers, null);
    granted = client.clock.read();
  }

  /** Begins to renew a grant whose lease counts from since. */
  static Held begin(
      Fencepost client, Target of, Entry entry, LockOptions options, Reading since,
      Map<String, String> headers) {
    Held held = new Held(client, of, entry, options, since, headers);
    try {
      held.look();
      if (!client.watch.keep(held)) {
        held.end(new LockLostException(of.name, LockLostException.CLOSED));
      }
      held.check();
      return held;
    } catch (RuntimeException | Error e) { // such as a timer's thread that cannot be started
      held.end(RELEASED); // no call would end the renewals
      throw e;
    }
  }

  /**
   * Returns the id of the entry, as lists and events have it.
   *
   * @return the id
   */
  public String id() {
    return entry.id;
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name; of a set, the names with commas in between
   */
  public String name() {
    return of.name;
  }

  /**
   * Returns the fence of the grant. The resource that is written compares it: it grows from each
   * grant of a lock to the next. All locks of a set have the same.
   *
   * @return the fence
   */
  public long fence() {
    return entry.fences.values().iterator().next();
  }

  /**
   * Returns the fences of a set; of {@link Fencepost#lockAny}, those of what was granted.
   *
   * @return the fences, by the name of the lock
   */
  public Map<String, Long> fences() {
    return entry.fences;
  }

  /**
   * Returns the secret that renews and releases the lock, for a process that takes it over by
   * {@link Fencepost#adopt}. Close the client of this process then, without a release.
   *
   * @return the token; keep it out of logs
   */
  public String token() {
    return entry.token;
  }

  /** Names the lock and its fence, and not the token. */
  @Override
  public String toString() {
    FencepostException why = ended();
    String state = why == null ? left() + " left" : why == RELEASED ? "released" : "lost";
    return name() + " with the fence " + fence() + ", " + state;
  }

  /**
   * Returns how long the lock is held for certain without another renewal, such as for the timeout
   * of a statement. Its lease ends one margin later.
   *
   * @return the time until the deadline; negative after it
   */
  public Duration left() {
    return Duration.ofNanos(nanosLeft());
  }

  /**
   * Throws unless the lock is held. It reads the clocks, so it also knows what listeners are about
   * to learn after the process or the machine was stopped. It asks no server.
   *
   * @throws LockLostException if the lock is lost
   * @throws FencepostException with the code released, after a release
   */
  public void check() {
    overdue();
    FencepostException why = ended();
    if (why instanceof LockLostException) {
      throw ((LockLostException) why).copy();
    } else if (why != null) {
      throw FencepostException.of("released", "the lock is released");
    }
  }

  /**
   * Calls a listener when the lock is lost, on a thread of the client; at once if it is.
   *
   * @param listener gets the reason
   * @return this
   */
  public Held onLost(Consumer<LockLostException> listener) {
    FencepostException why;
    synchronized (this) {
      why = ended();
      if (why == null) {
        listeners = new ArrayList<>(listeners);
        listeners.add(listener);
      }
    }
    if (why instanceof LockLostException) {
      call(listener, (LockLostException) why);
    }
    return this;
  }

  /**
   * Interrupts the calling thread when the lock is lost; at once if it is. If that thread closes
   * the lock, it is not interrupted any more afterwards.
   *
   * @return this
   */
  public Held interruptOnLost() {
    synchronized (this) {
      worker = Thread.currentThread();
      if (ended() instanceof LockLostException) {
        interrupt();
      }
    }
    return this;
  }

  private void interrupt() {
    if (worker != null) {
      interrupted = true;
      worker.interrupt();
    }
  }

  /**
   * Gives the lock back. It tries until the deadline of the lock and no longer. If that fails, it
   * logs why, and the lock expires with its TTL. A second call sends nothing. If the thread is
   * interrupted, the release goes on in the background. With {@link LockOptions#atLeast} it returns
   * at once, and the lock is released in the background when that is over.
   *
   * @throws LockLostException if the lock was lost before
   * @throws FencepostException if no server released it
   */
  public void release() {
    overdue();
    boolean first = !keeps() && end(RELEASED);
    calm();
    if (!first) {
      FencepostException why = ended();
      if (why instanceof LockLostException) {
        throw ((LockLostException) why).copy();
      }
      return;
    }
    client.awaitOrLeave(
        client.linger(life.headers, Thread.currentThread(), this::sendRelease));
  }

  /**
   * Begins the rest of the least time of the lock, and reports whether there is one. The lock is
   * renewed until it is over, and released then.
   */
  private boolean keeps() {
    long left = options.atLeast() - client.clock.read().ranSince(granted);
    synchronized (this) {
      if (left > 0 && ended == null && !rests) {
        rest = client.clock.after(left, this::releaseLater);
        rests = true;
      }
      return rests;
    }
  }

  private void releaseLater() {
    if (!overdue() && end(RELEASED)) {
      client.linger(life.headers, null, this::sendRelease);
    }
  }

  /** Clears the interrupt of a loss, because the release reports the loss. */
  private synchronized void calm() {
    if (interrupted && worker == Thread.currentThread()) {
      Thread.interrupted();
    }
    interrupted = false;
    worker = null;
  }

  private CompletableFuture<Void> sendRelease(Scope scope) {
    return client.repeat(
            scope, Limit.ofHeld(this::nanosLeft),
            at -> client.sender.send(at, Request.release(of, entry)))
        .handle(this::released);
  }

  private Void released(Answer answer, Throwable failure) {
    Throwable why = Repeat.cause(failure);
    if (why == null || Acquisition.isLost(why)) {
      return null;
    }
    client.clock.execute(() -> LOG.log(System.Logger.Level.WARNING,
        "The lock {0} with the fence {1} could not be released and expires: {2}",
        name(), Long.toString(fence()), why.getMessage()));
    throw (RuntimeException) why;
  }

  /**
   * Releases the lock as {@link #release} does, but a failed release is only logged, so that it
   * does not hide how the work ended.
   *
   * @throws LockLostException if the lock was lost before
   */
  @Override
  public void close() {
    try {
      release();
    } catch (LockLostException e) {
      throw e;
    } catch (FencepostException e) {
      // It is logged, and the lock expires.
    }
  }

  /** Returns why the lock is not held any more, for its user. */
  private synchronized FencepostException ended() {
    return rests ? RELEASED : ended;
  }

  private long nanosLeft() {
    Reading now = client.clock.read();
    synchronized (this) {
      return untilDeadline(now);
    }
  }

  private synchronized long ttl() {
    return ttl;
  }

  private long untilDeadline(Reading now) {
    return ttl - options.marginOf(ttl) - now.since(since);
  }

  /**
   * Returns the time until the next renewal: a third of the TTL after the last one was sent, and up
   * to a tenth of that sooner or later, so that many locks do not renew at once.
   */
  private long untilRenewal(Reading now) {
    long third = ttl / 3;
    long jitter = ThreadLocalRandom.current().nextLong(Math.max(third / 5, 1));
    return Math.max(0, third - third / 10 + jitter - now.since(since));
  }

  /** Ends the lock if its deadline has come. */
  private boolean overdue() {
    Reading now = client.clock.read();
    LockLostException why;
    synchronized (this) {
      if (untilDeadline(now) > 0) {
        return false;
      }
      why = LockLostException.deadline(name(), Duration.ofNanos(now.since(since)), failure);
    }
    end(why);
    return true;
  }

  /**
   * Ends the lock if its deadline has come. Otherwise it sets the timers, which stand still while
   * the machine is suspended.
   */
  void look() {
    if (overdue()) {
      return;
    }
    Reading now = client.clock.read();
    synchronized (this) {
      if (ended != null) {
        return;
      }
      expiry.run();
      expiry = client.clock.after(untilDeadline(now), this::look);
      if (!renews) {
        renewal.run();
        renewal = client.clock.after(untilRenewal(now), this::renew);
      }
    }
  }

  /** Ends the lock for a reason. It reports false if it had ended before. */
  boolean end(FencepostException why) {
    List<Consumer<LockLostException>> called;
    boolean works;
    synchronized (this) {
      if (ended != null) {
        return false;
      }
      ended = why;
      if (why != RELEASED) {
        interrupt();
      }
      renewal.run();
      expiry.run();
      rest.run();
      works = !rests;
      called = listeners;
      listeners = List.of();
    }
    life.cancel();
    client.watch.drop(this);
    if (works && why instanceof LockLostException) {
      called.forEach(listener -> call(listener, (LockLostException) why));
      client.clock.execute(() -> LOG.log(System.Logger.Level.WARNING,
          "The lock with the fence {0} is lost: {1}",
          Long.toString(fence()), why.getMessage()));
    }
    return true;
  }

  private void call(Consumer<LockLostException> listener, LockLostException why) {
    client.clock.execute(() -> listener.accept(why.copy()));
  }

  /** Renews the lock until one request succeeds, or the deadline has come, which ends it. */
  private void renew() {
    synchronized (this) {
      if (ended != null || renews) {
        return;
      }
      renews = true;
    }
    client.repeat(life, Limit.ofHeld(this::nanosLeft), this::tryToRenew)
        .whenComplete((nothing, failure) -> {
          if (Acquisition.isLost(Repeat.cause(failure))) {
            end(LockLostException.of(name(), (FencepostException) Repeat.cause(failure)));
          }
        });
  }

  private CompletableFuture<Void> tryToRenew(Repeat.Attempt at) {
    Reading sent = client.clock.read();
    return client.sender.sendForEntry(at, Request.renewal(of, entry, ttl()))
        .handle((answered, failed) -> {
          if (failed != null) {
            throw untilLost(Repeat.cause(failed));
          }
          renewed(sent, answered);
          return null;
        });
  }

  /**
   * Makes each failure of a renewal but 410 one to try again after. A bearer token that is refused
   * now may be replaced before the deadline.
   */
  private RuntimeException untilLost(Throwable failed) {
    if (Acquisition.isLost(failed)) {
      return (FencepostException) failed;
    }
    Again again = failed instanceof Again
        ? (Again) failed : new Again((FencepostException) failed, null);
    synchronized (this) {
      failure = again.problem;
    }
    return again;
  }

  /** Moves the deadline, unless it has come while the answer was on its way. */
  private void renewed(Reading sent, Entry answered) {
    if (overdue()) {
      return;
    }
    boolean report;
    ReleaseRequested asks = answered.releaseRequested;
    synchronized (this) {
      since = sent;
      ttl = answered.ttl;
      failure = null;
      renews = false;
      report = ended() == null && asks != null && asks.differs(asked);
      asked = asks;
    }
    look();
    if (report) {
      client.clock.execute(() -> options.listener().accept(asks));
    }
  }
}
