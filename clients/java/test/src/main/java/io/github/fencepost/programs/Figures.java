package io.github.fencepost.programs;

import com.sun.management.OperatingSystemMXBean;
import io.github.fencepost.Fencepost;
import io.github.fencepost.Held;
import io.github.fencepost.LockOptions;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.UUID;

/** Measures what the client costs its process, see test/contest/README.md. */
public final class Figures {
  private static final int LOCKS = 1000;
  private static final int CYCLES = 2000;
  private static final int BATCH = 100; // of cycles; both sides take turns
  private static final int WARM = 2000; // cycles of both before, so that both are compiled
  private static final int WARM_RENEWALS = 20_000; // ms
  private static final int WATCH = 60_000; // ms

  private static final String URL = System.getenv("FENCEPOST_URL").split(",")[0];
  private static final String TOKEN = System.getenv("FENCEPOST_TOKEN");
  private static final HttpClient HTTP =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private Figures() {}

  /**
   * Prints the figures.
   *
   * @param arguments are not used
   * @throws Exception if a server does not answer
   */
  public static void main(String[] arguments) throws Exception {
    try (Fencepost fencepost = new Fencepost(URL, TOKEN)) {
      double ratio = ratio(fencepost);
      // Renewals are compiled before, too: a service runs longer than this program.
      List<Held> brief = hold(fencepost, LockOptions.ttl(Duration.ofSeconds(5)));
      Thread.sleep(WARM_RENEWALS);
      brief.forEach(Held::close);
      long before = resident();
      long heap = heap();
      List<Held> held = hold(fencepost, LockOptions.defaults());
      long bytes = Math.max(resident() - before, heap() - heap) / LOCKS;
      long begun = System.nanoTime();
      long used = cpu();
      Thread.sleep(WATCH);
      double percent = 100.0 * (cpu() - used) / (System.nanoTime() - begun);
      held.forEach(Held::close);
      System.out.printf(Locale.ROOT, "held-cpu-percent %.2f%n", percent);
      System.out.printf(Locale.ROOT, "held-bytes %d%n", bytes);
      System.out.printf(Locale.ROOT, "acquire-ratio %.2f%n", ratio);
    }
  }

  private static List<Held> hold(Fencepost fencepost, LockOptions options) {
    List<Held> held = new ArrayList<>();
    for (int i = 0; i < LOCKS; i++) {
      held.add(fencepost.tryLock("figures:held:" + i, options));
    }
    return held;
  }

  /** Returns how much more processor time a cycle takes by the client than by java.net.http. */
  private static double ratio(Fencepost fencepost) throws Exception {
    long byClient = 0;
    long bare = 0;
    for (int i = -WARM; i < CYCLES; i += BATCH) {
      long before = cpu();
      for (int n = 0; n < BATCH; n++) {
        fencepost.tryLock("figures:cycle", LockOptions.defaults()).release();
      }
      long between = cpu();
      for (int n = 0; n < BATCH; n++) {
        bareCycle();
      }
      if (i >= 0) {
        byClient += between - before;
        bare += cpu() - between;
      }
    }
    return (double) byClient / bare;
  }

  /** Sends what the client sends. */
  private static void bareCycle() throws IOException, InterruptedException {
    HttpRequest.Builder acquire =
        request().header("Idempotency-Key", UUID.randomUUID().toString())
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"ttl_seconds\":30.0}"));
    String answer = send(acquire);
    String token = answer.replaceFirst("(?s).*\"token\":\"([^\"]*)\".*", "$1");
    send(request().header("Lock-Token", token).DELETE());
  }

  private static HttpRequest.Builder request() {
    return HttpRequest.newBuilder(URI.create(URL + "/locks/figures:cycle"))
        .header("Authorization", "Bearer " + TOKEN);
  }

  private static String send(HttpRequest.Builder request)
      throws IOException, InterruptedException {
    HttpResponse<String> answer =
        HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 300) {
      throw new IOException("the server answers " + answer.statusCode());
    }
    return answer.body();
  }

  private static long cpu() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  /** Returns the bytes of objects, after {@link #resident}: the process may reuse what it has. */
  private static long heap() {
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  /** Returns the bytes of memory that this process has, without garbage. */
  private static long resident() throws IOException, InterruptedException {
    for (int i = 0; i < 5; i++) {
      System.gc();
      Thread.sleep(200);
    }
    String pages = Files.readString(Paths.get("/proc/self/statm")).split(" ")[1];
    return Long.parseLong(pages) * 4096;
  }
}
