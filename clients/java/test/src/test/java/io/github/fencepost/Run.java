package io.github.fencepost;

import static io.github.fencepost.Vector.includes;
import static io.github.fencepost.Vector.list;
import static io.github.fencepost.Vector.number;
import static io.github.fencepost.Vector.object;
import static io.github.fencepost.Vector.text;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/** Plays one vector in virtual time. */
final class Run {
  /** A call of the client, which leaves what it gives in its outcome. */
  private interface Call {
    void run() throws Exception;
  }

  private final Vector vector;
  private final VirtualTime time;
  private final Script script;
  private final Fencepost client;
  private final List<String> faults = new ArrayList<>();
  private final Map<String, Held> held = new HashMap<>();
  private final Map<String, Pending> pending = new HashMap<>();
  private final Map<String, Thread> threads = new HashMap<>();
  private final Map<String, CompletableFuture<Void>> resigned = new HashMap<>();
  private final List<JsonObject> open = new ArrayList<>(); // steps whose calls have not ended
  private final Map<JsonObject, JsonObject> outcomes = new HashMap<>();
  private final Map<JsonObject, List<JsonElement>> asked = new HashMap<>();
  private final List<Runnable> atTheEnd = new ArrayList<>();
  private boolean over;

  private Run(Vector vector) {
    this.vector = vector;
    JsonObject config = vector.config();
    time = new VirtualTime(!text(config, "clock").equals("wall"));
    script = new Script(vector, time, this::fault);
    List<String> urls = texts(config, "urls");
    String trace = text(config, "traceparent");
    Fencepost.Builder builder =
        Fencepost.builder(urls.isEmpty() ? new String[] {"http://a"} : urls.toArray(new String[0]))
            .token("T").clock(time).http(new ScriptedServer(time, script::take))
            .headers(() -> trace.isEmpty() ? Map.of() : Map.of("traceparent", trace));
    if (config.has("retry_for")) {
      builder.retryFor(seconds(config, "retry_for"));
    }
    client = builder.build();
  }

  /** Returns what was not as the vector says. */
  static List<String> play(Vector vector) {
    Run run = new Run(vector);
    run.play();
    return run.faults;
  }

  private void fault(String what) {
    if (!over) {
      faults.add(String.format("%.3f: %s", time.seconds(), what));
    }
  }

  private void play() {
    for (JsonElement step : vector.steps()) {
      time.advance(number(step, "at"));
      take(step.getAsJsonObject());
      time.settle();
    }
    time.advance(vector.until());
    script.end();
    open.forEach(this::compareOpen);
    atTheEnd.forEach(Runnable::run);
    over = true;
    time.start(client::close);
    if (!time.end()) {
      faults.add("a call does not end when its thread is interrupted");
    }
  }

  private void take(JsonObject step) {
    switch (text(step, "do")) {
      case "pause":
        time.pause(number(step, "seconds"));
        break;
      case "suspend":
        time.suspend(number(step, "seconds"));
        break;
      case "wall":
        time.setWall(number(step, "seconds"));
        break;
      case "cancel":
        threads.get(text(step, "of")).interrupt();
        break;
      case "resign":
        resigned.get(text(step, "of")).complete(null);
        break;
      default:
        start(step);
    }
  }

  /** Runs a call beside the others, and compares how it ends. */
  private void start(JsonObject step) {
    JsonObject outcome = new JsonObject();
    outcomes.put(step, outcome);
    asked.put(step, new ArrayList<>(list(step, "release_requested")));
    atTheEnd.add(() -> {
      if (!asked.get(step).isEmpty()) {
        fault("it was not asked for the release: " + asked.get(step));
      }
    });
    Call call = callOf(step, outcome);
    Thread thread = time.start(() -> {
      threads.put(text(step, "as"), Thread.currentThread());
      open.add(step);
      FencepostException failure = null;
      try {
        call.run();
      } catch (FencepostException e) {
        failure = e;
      } catch (Exception e) {
        fault(text(step, "do") + ": " + e);
      }
      open.remove(step);
      compare(step, outcome, failure);
    });
    threads.putIfAbsent(text(step, "as"), thread);
  }

  private Call callOf(JsonObject step, JsonObject outcome) {
    String name = text(step, "name");
    String of = text(step, "of");
    switch (text(step, "do")) {
      case "lock":
        return () -> hold(step, outcome, client.lock(name, options(step)));
      case "try_lock":
        return () -> hold(step, outcome, client.tryLock(name, options(step)));
      case "lock_set":
        return () -> hold(step, outcome, client.lockSet(claims(step), options(step)));
      case "try_lock_set":
        return () -> hold(step, outcome, client.tryLockSet(claims(step), options(step)));
      case "lock_any":
        return () -> hold(
            step, outcome, client.lockAny(claims(step), count(step, "any"), options(step)));
      case "try_lock_any":
        return () -> hold(
            step, outcome, client.tryLockAny(claims(step), count(step, "any"), options(step)));
      case "claim":
        Event event = Event.parse(vector.body(step.get("event")).toString());
        return () -> hold(step, outcome, client.claim(event, options(step)));
      case "adopt":
        String token = text(step, "token");
        return () -> hold(step, outcome, client.adopt(name, options(step), token));
      case "wait":
        return () -> hold(step, outcome, pending.get(of).await());
      case "async":
        return () -> {
          Pending p = client.asyncAcquire(name, options(step), text(step, "callback_url"));
          pending.put(text(step, "as"), p);
          outcome.addProperty("id", p.id());
        };
      case "leave":
        return () -> pending.get(of).leave();
      case "release":
        return () -> held.get(of).release();
      case "check":
        return () -> held.get(of).check();
      case "close":
        return client::close;
      case "lead":
        CompletableFuture<Void> end = new CompletableFuture<>();
        resigned.put(text(step, "as"), end);
        outcome.add("terms", new JsonArray());
        return () -> client.lead(name, options(step), h -> term(outcome, h, end));
      default:
        return lookOf(step, outcome);
    }
  }

  private Call lookOf(JsonObject step, JsonObject outcome) {
    switch (text(step, "do")) {
      case "look":
        return () -> {
          LockInfo lock = client.look(text(step, "name"));
          outcome.addProperty("fence", lock.fence());
          outcome.addProperty("waiting", lock.waiting());
        };
      case "list":
        outcome.add("names", new JsonArray());
        return () -> client.list(filter(step))
            .forEach(lock -> outcome.getAsJsonArray("names").add(lock.name()));
      case "events":
        outcome.add("events", new JsonArray());
        return () -> follow(step, outcome.getAsJsonArray("events"));
      case "stale_write":
        return () -> client.staleWrite(
            StaleWrite.of(text(step, "name")).resource(text(step, "resource"))
                .presented((long) number(step, "fence_presented"))
                .known((long) number(step, "fence_known")));
      case "verify":
        return () -> {
          JsonObject headers = object(step, "headers");
          Event event = Webhooks.verify(
              Instant.ofEpochSecond((long) number(step, "now")),
              header -> headers.has(header) ? text(headers, header) : null,
              text(step, "payload").getBytes(StandardCharsets.UTF_8),
              texts(step, "secrets").toArray(new String[0]));
          outcome.addProperty("id", event.id());
          outcome.addProperty("type", event.type());
        };
      default:
        throw new AssertionError("there is no step " + step);
    }
  }

  /** Keeps a held lock, and compares when and why its work is stopped. */
  private void hold(JsonObject step, JsonObject outcome, Held lock) {
    held.put(text(step, "as"), lock);
    outcome.addProperty("fence", lock.fence());
    JsonObject fences = new JsonObject();
    lock.fences().forEach(fences::addProperty);
    outcome.add("fences", fences);
    boolean[] stopped = new boolean[1];
    lock.onLost(why -> {
      if (!why.reason().equals("closed")) {
        stopped[0] = true;
        compareLoss(step, why);
      }
    });
    if (step.has("lost")) {
      atTheEnd.add(() -> {
        if (!stopped[0]) {
          fault(text(step, "as") + " is not lost");
        }
      });
    }
  }

  private void compareLoss(JsonObject step, LockLostException why) {
    JsonObject want = object(step, "lost");
    if (!step.has("lost") || !includes(want.get("at"), time.seconds())
        || !why.reason().equals(text(want, "reason"))
        || !why.revokeReason().equals(text(want, "revoke_reason"))) {
      fault(text(step, "as") + ": " + why.getMessage() + ", want " + step.get("lost"));
    }
  }

  /** Runs one term of a leader. */
  private void term(JsonObject outcome, Held lock, CompletableFuture<Void> end)
      throws ExecutionException {
    JsonObject term = new JsonObject();
    term.addProperty("fence", lock.fence());
    term.addProperty("at", time.seconds());
    try {
      time.await(end);
    } catch (InterruptedException e) {
      // The lock is lost, or the call is cancelled: the work ends.
    }
    term.addProperty("ended", time.seconds());
    outcome.getAsJsonArray("terms").add(term);
  }

  private void follow(JsonObject step, JsonArray seen) {
    EventFilter filter =
        EventFilter.all().types(texts(step, "types").toArray(new String[0]))
            .locks(texts(step, "locks").toArray(new String[0])).after(text(step, "after"));
    try (Events events = client.events(filter)) {
      while (events.hasNext()) {
        Event event = events.next();
        JsonObject one = new JsonObject();
        one.addProperty("at", time.seconds());
        one.addProperty("id", event.id());
        one.addProperty("type", event.type());
        seen.add(one);
      }
    }
  }

  /** Compares a call that goes on when the run ends. */
  private void compareOpen(JsonObject step) {
    JsonObject want = object(step, "result");
    if (want.has("at") || want.has("error")) {
      fault(text(step, "do") + " " + text(step, "as") + " does not end");
    } else {
      compareValues(step, want, outcomes.get(step));
    }
  }

  /** Compares how a call ended with what is said of it. */
  private void compare(JsonObject step, JsonObject got, FencepostException failure) {
    String call = text(step, "do") + " " + text(step, "as") + text(step, "of");
    JsonObject want = object(step, "result");
    if (!step.has("result") || !includes(want.get("at"), time.seconds())) {
      fault(call + " ends: " + failure + ", want " + want);
    }
    if (want.has("error") != (failure != null)) {
      fault(call + ": " + failure + ", want " + want.get("error"));
    }
    if (failure != null) {
      compareError(call, object(want, "error"), failure);
    }
    compareValues(step, want, got);
  }

  private void compareError(String call, JsonObject want, FencepostException failure) {
    Map<String, String> got = new HashMap<>();
    got.put("code", failure.code());
    got.put("status", String.valueOf(failure.status()));
    got.put("reason", failure.reason());
    got.put("request_id", failure.requestId());
    got.put("retry_after", String.valueOf(failure.retryAfter().toSeconds()));
    got.put("holder", failure.holders().isEmpty() ? "" : failure.holders().get(0).holder());
    if (failure instanceof LockLostException) {
      got.put("revoke_reason", ((LockLostException) failure).revokeReason());
    }
    for (String name : want.keySet()) {
      if (!text(want, name).equals(got.get(name))) {
        fault(call + ": " + failure + " has " + name + " " + got.get(name) + ", want " + want);
      }
    }
  }

  private void compareValues(JsonObject step, JsonObject want, JsonObject got) {
    for (String name : want.keySet()) {
      if (name.equals("at") || name.equals("error")) {
        continue;
      }
      JsonElement is = got.get(name);
      if (is == null || !same(want.get(name), is)) {
        fault(text(step, "do") + " gives " + name + " " + is + ", want " + want.get(name));
      }
    }
  }

  /** Compares values. Times of a list are within their bounds. */
  private boolean same(JsonElement want, JsonElement got) {
    if (!want.isJsonArray()) {
      return vector.matches(want, got);
    }
    boolean same = want.getAsJsonArray().size() == got.getAsJsonArray().size();
    for (int i = 0; same && i < want.getAsJsonArray().size(); i++) {
      JsonElement a = want.getAsJsonArray().get(i);
      JsonElement b = got.getAsJsonArray().get(i);
      same = a.isJsonObject() ? sameObject(a.getAsJsonObject(), b.getAsJsonObject())
          : vector.matches(a, b);
    }
    return same;
  }

  private boolean sameObject(JsonObject want, JsonObject got) {
    return want.keySet().stream().allMatch(name ->
        name.equals("at") || name.equals("ended")
            ? includes(want.get(name), number(got, name))
            : vector.matches(want.get(name), got.get(name)));
  }

  private LockOptions options(JsonObject step) {
    LockOptions o = LockOptions.defaults();
    o = step.has("ttl") ? LockOptions.ttl(seconds(step, "ttl")) : o;
    o = step.has("wait") ? o.wait(seconds(step, "wait")) : o;
    o = text(step, "mode").equals("shared") ? o.shared() : o;
    o = step.has("limit") ? o.semaphore(count(step, "limit"), count(step, "permits")) : o;
    o = step.has("only_newest") ? o.onlyNewest() : o;
    o = o.holder(text(step, "holder"));
    o = step.has("request_release") ? o.requestRelease(seconds(step, "request_release")) : o;
    o = step.has("at_least") ? o.atLeast(seconds(step, "at_least")) : o;
    o = step.has("margin") ? o.margin(seconds(step, "margin")) : o;
    JsonObject pairs = object(step, "metadata");
    Map<String, String> metadata = new HashMap<>();
    pairs.keySet().forEach(name -> metadata.put(name, text(pairs, name)));
    return o.metadata(metadata).onReleaseRequested(asks -> {
      List<JsonElement> want = asked.get(step);
      JsonElement first = want.isEmpty() ? new JsonPrimitive("none") : want.remove(0);
      if (!first.isJsonObject() || !text(first, "by").equals(asks.by())
          || !includes(first.getAsJsonObject().get("at"), time.seconds())) {
        fault(asks.by() + " asks for the release, want " + first);
      }
    });
  }

  private static LockFilter filter(JsonObject step) {
    return LockFilter.all().prefix(text(step, "prefix")).state(text(step, "state"));
  }

  private static List<Claim> claims(JsonObject step) {
    List<Claim> claims = new ArrayList<>();
    for (JsonElement claim : list(step, "claims")) {
      String name = text(claim, "name");
      switch (text(claim, "mode")) {
        case "shared":
          claims.add(Claim.shared(name));
          break;
        case "semaphore":
          claims.add(Claim.semaphore(name, count(claim, "limit"), count(claim, "permits")));
          break;
        default:
          claims.add(Claim.exclusive(name));
      }
    }
    return claims;
  }

  private static int count(JsonElement of, String name) {
    return of.getAsJsonObject().has(name) ? (int) number(of.getAsJsonObject(), name) : 0;
  }

  private static List<String> texts(JsonObject of, String name) {
    List<String> texts = new ArrayList<>();
    list(of, name).forEach(one -> texts.add(one.getAsString()));
    return texts;
  }

  private static Duration seconds(JsonObject of, String name) {
    return Duration.ofNanos(VirtualTime.nanos(number(of, name)));
  }
}
