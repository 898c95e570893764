package io.github.fencepost;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * How to acquire a lock. Each method returns options that differ in one; the default is an
 * exclusive lock with a TTL of 30 s, for which a call waits up to a minute.
 */
public final class LockOptions implements Cloneable {
  private static final Duration LEAST_MARGIN = Duration.ofMillis(250);

  private Duration ttl = Duration.ofSeconds(30);
  private Duration wait = Duration.ofMinutes(1);
  private Duration margin;
  private Duration requestRelease;
  private Duration atLeast = Duration.ZERO;
  private String mode = "";
  private int limit;
  private int permits;
  private boolean onlyNewest;
  private String holder = "";
  private Map<String, String> metadata = Map.of();
  private Consumer<ReleaseRequested> onReleaseRequested = asked -> {};

  private LockOptions() {}

  /**
   * Returns the options of a call that gives none.
   *
   * @return the options
   */
  public static LockOptions defaults() {
    return new LockOptions();
  }

  /**
   * Returns options with a lease: how long a dead holder blocks the lock. 30 s by default, 2 s at
   * least; of an async entry 15 s.
   *
   * @param ttl of the lease
   * @return the options
   */
  public static LockOptions ttl(Duration ttl) {
    return new LockOptions().with(o -> o.ttl = checked("ttl", ttl));
  }

  /**
   * Says how long to queue at most; a minute by default. {@code tryLock} does not queue.
   *
   * @param wait at most
   * @return the options
   */
  public LockOptions wait(Duration wait) {
    return with(o -> o.wait = checked("wait", wait));
  }

  /**
   * Asks for a lock together with other shared holders. A set has modes of its own.
   *
   * @return the options
   */
  public LockOptions shared() {
    return with(o -> o.mode = "shared");
  }

  /**
   * Asks for one of the permits of a semaphore. A set has modes of its own.
   *
   * @param limit how many permits there are; each entry is judged by its own
   * @return the options
   */
  public LockOptions semaphore(int limit) {
    return semaphore(limit, 0);
  }

  /**
   * Asks for permits of a semaphore. A set has modes of its own.
   *
   * @param limit how many permits there are; each entry is judged by its own
   * @param permits how many of them the lock takes
   * @return the options
   */
  public LockOptions semaphore(int limit, int permits) {
    return with(o -> {
      o.mode = "semaphore";
      o.limit = limit;
      o.permits = permits;
    });
  }

  /**
   * Gives up the wait for a later one that has this option, too: {@link
   * FencepostException.Superseded}.
   *
   * @return the options
   */
  public LockOptions onlyNewest() {
    return with(o -> o.onlyNewest = true);
  }

  /**
   * Names this worker, for people; by default it has the name of its bearer token. The server
   * detects deadlocks among holders with a name.
   *
   * @param holder the name
   * @return the options
   */
  public LockOptions holder(String holder) {
    return with(o -> o.holder = holder);
  }

  /**
   * Shows metadata with the lock.
   *
   * @param metadata up to 16 pairs, 2 KiB in all
   * @return the options
   */
  public LockOptions metadata(Map<String, String> metadata) {
    return with(o -> o.metadata = Map.copyOf(metadata));
  }

  /**
   * Asks the holder to finish, if the call has to wait.
   *
   * @param within this time
   * @return the options
   */
  public LockOptions requestRelease(Duration within) {
    return with(o -> o.requestRelease = checked("requestRelease", within));
  }

  /**
   * Says how long before the end of the lease the work has to stop: a tenth of the TTL by default,
   * and at least 250 ms. It covers the time from a check to the effect of a write, and clocks that
   * differ in speed.
   *
   * @param margin at most half of the TTL counts
   * @return the options
   */
  public LockOptions margin(Duration margin) {
    return with(o -> o.margin = checked("margin", margin));
  }

  /**
   * Keeps the lock, and renews it, until some time after the grant, although the work has ended.
   * Its release returns at once. A client that is closed, or a process that exits, leaves the rest
   * to the TTL: one as long covers that.
   *
   * @param time after the grant
   * @return the options
   */
  public LockOptions atLeast(Duration time) {
    return with(o -> o.atLeast = checked("atLeast", time));
  }

  /**
   * Calls a listener, while the lock is held, when a waiter asks the holder to finish; once for
   * each that is the first to ask. Nothing is taken away.
   *
   * @param listener on a thread of the client
   * @return the options
   */
  public LockOptions onReleaseRequested(Consumer<ReleaseRequested> listener) {
    return with(o -> o.onReleaseRequested = listener);
  }

  static Duration checked(String name, Duration value) {
    if (value.isNegative() || value.toDays() > 36_500) { // nanoseconds overflow after 292 years
      throw FencepostException.invalid(name + " is negative or longer than a century");
    }
    return value;
  }

  private LockOptions with(Consumer<LockOptions> change) {
    try {
      LockOptions copy = (LockOptions) clone();
      change.accept(copy);
      return copy;
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }

  Duration ttl() {
    return ttl;
  }

  Duration waits() {
    return wait;
  }

  long atLeast() {
    return atLeast.toNanos();
  }

  Consumer<ReleaseRequested> listener() {
    return onReleaseRequested;
  }

  /** Returns the margin: at most half of the lease, so that a renewal fits before the deadline. */
  long marginOf(long ttl) {
    long wanted = margin == null ? Math.max(ttl / 10, LEAST_MARGIN.toNanos()) : margin.toNanos();
    return Math.min(wanted, ttl / 2);
  }

  /** Returns what an acquire sends. */
  JsonObject body(Target of) {
    JsonObject body = new JsonObject();
    if (of.claims.isEmpty()) {
      Claim.addMode(body, mode, limit, permits);
    } else {
      JsonArray locks = new JsonArray();
      of.claims.forEach(claim -> locks.add(claim.json()));
      body.add("locks", locks);
      if (of.k > 0) {
        body.addProperty("any", of.k);
      }
    }
    body.addProperty("ttl_seconds", seconds(ttl));
    if (!wait.isZero()) {
      body.addProperty("wait_seconds", seconds(wait));
    }
    if (requestRelease != null && !wait.isZero()) {
      JsonObject wish = new JsonObject();
      wish.addProperty("within_seconds", seconds(requestRelease));
      body.add("request_release", wish);
    }
    if (onlyNewest) {
      body.addProperty("only_newest", true);
    }
    addPeople(body);
    return body;
  }

  private void addPeople(JsonObject body) {
    if (!holder.isEmpty()) {
      body.addProperty("holder", holder);
    }
    if (!metadata.isEmpty()) {
      JsonObject pairs = new JsonObject();
      new TreeMap<>(metadata).forEach(pairs::addProperty);
      body.add("metadata", pairs);
    }
  }

  private static double seconds(Duration duration) {
    return duration.toNanos() / 1e9;
  }
}
