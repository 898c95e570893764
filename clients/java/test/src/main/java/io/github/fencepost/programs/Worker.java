package io.github.fencepost.programs;

import com.google.gson.JsonObject;
import io.github.fencepost.Fencepost;
import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockLostException;
import io.github.fencepost.LockOptions;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;

/** The Java worker of the contest, see test/contest/README.md. */
public final class Worker {
  private static final String RESOURCE = System.getenv("RESOURCE");

  private final Fencepost fencepost;
  private final HttpClient http = HttpClient.newHttpClient();
  private final Duration ttl;
  private final Duration margin;
  private volatile boolean over;

  private Worker(Fencepost fencepost, Duration ttl) {
    this.fencepost = fencepost;
    this.ttl = ttl;
    Duration least = Duration.ofMillis(250);
    margin = ttl.dividedBy(10).compareTo(least) > 0 ? ttl.dividedBy(10) : least;
  }

  /** A write that the resource rejected. */
  @SuppressWarnings("serial")
  private static final class Stale extends Exception {
    Stale() {
      super("the resource knows a greater fence");
    }
  }

  /**
   * Works until standard input is closed.
   *
   * @param arguments are not used
   * @throws IOException if standard input cannot be read
   */
  public static void main(String[] arguments) throws IOException {
    Duration ttl = Duration.ofMillis((long) (1000 * Double.parseDouble(System.getenv("TTL"))));
    Fencepost fencepost =
        Fencepost.builder(System.getenv("FENCEPOST_URL").split(","))
            .token(System.getenv("FENCEPOST_TOKEN"))
            .build();
    Worker worker = new Worker(fencepost, ttl);
    Thread works = new Thread(worker::run);
    works.setDaemon(true);
    works.start();
    while (System.in.read() >= 0) {
      continue; // it says nothing
    }
    worker.over = true;
    fencepost.close();
  }

  private void run() {
    String[] locks = System.getenv("LOCKS").split(",");
    while (!over) {
      JsonObject round = round(locks[ThreadLocalRandom.current().nextInt(locks.length)]);
      if (!over) {
        System.out.println(round);
      }
    }
  }

  /** Adds one to what the resource has, under the lock. */
  private JsonObject round(String lock) {
    JsonObject round = new JsonObject();
    round.addProperty("lock", lock);
    round.addProperty("fence", 0);
    round.addProperty("outcome", "written");
    LockOptions options = LockOptions.ttl(ttl).wait(Duration.ofSeconds(20));
    try (Held held = fencepost.lock(lock, options).interruptOnLost()) {
      round.addProperty("fence", held.fence());
      work(held, round);
    } catch (Stale e) {
      fail(round, "stale", e);
    } catch (FencepostException | IOException | InterruptedException | NumberFormatException e) {
      fail(round, "failed", e);
    }
    return round;
  }

  /** A loss is why work was interrupted: the release adds it to what the work threw. */
  private static void fail(JsonObject round, String outcome, Exception why) {
    Throwable shown = why.getSuppressed().length > 0 ? why.getSuppressed()[0] : why;
    round.addProperty("outcome", shown instanceof LockLostException ? "lost" : outcome);
    round.addProperty("detail", String.valueOf(shown.getMessage()));
  }

  private void work(Held held, JsonObject round)
      throws IOException, InterruptedException, Stale {
    try {
      String resource = RESOURCE + "/" + held.name() + "?fence=" + held.fence();
      long value = Long.parseLong(send("GET", resource, "").body());
      Thread.sleep(ThreadLocalRandom.current().nextLong(ttl.toMillis() / 2));
      held.check();
      String write = resource + String.format(Locale.ROOT, "&left=%.3f", left(held));
      HttpResponse<String> answer = send("PUT", write, Long.toString(value + 1));
      if (answer.statusCode() == 409) {
        throw new Stale();
      } else if (answer.statusCode() != 204) {
        throw new IOException("the resource answers " + answer.statusCode());
      }
    } catch (Exception e) {
      round.addProperty("left", left(held));
      throw e;
    }
  }

  /** Returns the seconds to the end of the lease, as the client reckons. */
  private double left(Held held) {
    return held.left().plus(margin).toNanos() / 1e9;
  }

  private HttpResponse<String> send(String method, String url, String body)
      throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(url))
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
    return http.send(request, HttpResponse.BodyHandlers.ofString());
  }
}
