package io.github.fencepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.text.MessageFormat;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What vectors cannot show: sockets, threads and clocks of the machine. */
@Timeout(30)
class MachineTest {
  private static final String HALF =
      "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n{\"token\":";

  private final List<Socket> sockets = new ArrayList<>(); // so that they stay open
  private final CountDownLatch connected = new CountDownLatch(1);
  private ServerSocket server;
  private Fencepost fencepost;

  /** A server that sends the half of an answer, and then nothing. */
  @BeforeEach
  void listen() throws IOException {
    server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread accepts = new Thread(() -> {
      try {
        for (;;) {
          Socket socket = server.accept();
          sockets.add(socket);
          socket.getInputStream().read();
          socket.getOutputStream().write(HALF.getBytes(StandardCharsets.UTF_8));
          connected.countDown();
        }
      } catch (IOException e) {
        // The test is over.
      }
    });
    accepts.setDaemon(true);
    accepts.start();
    fencepost = builder().token("T").build();
  }

  private Fencepost.Builder builder() {
    return Fencepost.builder("http://127.0.0.1:" + server.getLocalPort())
        .retryFor(Duration.ofSeconds(1));
  }

  @AfterEach
  void close() throws IOException {
    fencepost.close();
    server.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }

  @Test
  void bodyThatStopsIsNoAnswerInTime() {
    long begun = System.nanoTime();
    assertThrows(
        FencepostException.NoAnswer.class,
        () -> fencepost.tryLock("a", LockOptions.defaults()));
    assertTrue(System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(3));
    assertFalse(Thread.currentThread().isInterrupted());
  }

  /** Calls until something ends that, and returns whether the thread is interrupted then. */
  private CompletableFuture<Boolean> call(Thread[] thread) throws InterruptedException {
    CompletableFuture<Boolean> ended = new CompletableFuture<>();
    thread[0] = new Thread(() -> {
      try {
        fencepost.lock("a");
      } catch (FencepostException.Cancelled e) {
        ended.complete(Thread.currentThread().isInterrupted());
      }
    });
    thread[0].start();
    assertTrue(connected.await(10, TimeUnit.SECONDS));
    return ended;
  }

  @Test
  void interruptEndsARequestAndStays() throws Exception {
    Thread[] thread = new Thread[1];
    CompletableFuture<Boolean> ended = call(thread);
    thread[0].interrupt();
    assertTrue(ended.get(20, TimeUnit.SECONDS));
  }

  @Test
  void closeEndsARequestAndInterruptsNothingElse() throws Exception {
    CompletableFuture<Boolean> ended = call(new Thread[1]);
    CompletableFuture<Void> closes = CompletableFuture.runAsync(fencepost::close);
    assertFalse(ended.get(20, TimeUnit.SECONDS));
    closes.get(20, TimeUnit.SECONDS);
  }

  @Test
  void tokenThatDoesNotComeIsNoAnswerInTime() {
    CountDownLatch never = new CountDownLatch(1);
    try (Fencepost other = builder().token(() -> {
      try {
        never.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return "T";
    }).build()) {
      assertThrows(FencepostException.NoAnswer.class, () -> other.look("a"));
    } finally {
      never.countDown();
    }
  }

  @Test
  void bootClockCountsHundredths() {
    byte[] text = "12345.67 400.10\n".getBytes(StandardCharsets.UTF_8);
    assertEquals(12_345_670_000_000L, SystemClock.parse(text, text.length));
  }

  @Test
  void bootClockIsReadAfterAnInterruptToo() throws Exception {
    SystemClock clock = new SystemClock();
    Thread.currentThread().interrupt();
    Reading before = clock.read();
    assertTrue(Thread.interrupted());
    TimeUnit.MILLISECONDS.sleep(30);
    Reading after = clock.read();
    assertTrue(after.since(before) >= TimeUnit.MILLISECONDS.toNanos(30));
    assertTrue(after.sleptSince(before) < TimeUnit.MILLISECONDS.toNanos(50));
  }

  private static String refusal(String url, String token) {
    return assertThrows(IllegalArgumentException.class, () -> new Fencepost(url, token))
        .getMessage();
  }

  @Test
  void whatCannotWorkFailsWhenTheClientIsMadeAndShowsNoSecret() {
    assertTrue(refusal(null, "T").contains("FENCEPOST_URL"));
    assertTrue(refusal(" , ", "T").contains("FENCEPOST_URL"));
    assertTrue(refusal("http://a", null).contains("FENCEPOST_TOKEN"));
    assertTrue(refusal("http://a", " \n").contains("FENCEPOST_TOKEN"));
    for (String url : new String[] {
        "http://u:secret@a", "http://a, http://secret:99999", "http://a?secret", "secret",
        "http://a#secret", "http://a b/secret", "ftp://secret"}) {
      assertFalse(refusal(url, "T").contains("secret"), url);
    }
    new Fencepost(" http://a/ , http://b,", "T\r\n").close();
    assertEquals("invalid_request", assertThrows(FencepostException.class,
        () -> LockOptions.ttl(Duration.ofSeconds(-1))).code());
  }

  @Test
  void requestThatCannotBeSentFailsAtOnce() {
    Fencepost.Builder headers = builder().token("T").headers(() -> Map.of("X-A", "secret\nB: c"));
    Fencepost.Builder tokens = builder().token(() -> "secret\nB: c").retryFor(Duration.ofDays(1));
    for (Fencepost.Builder each : List.of(headers.retryFor(Duration.ofDays(1)), tokens)) {
      try (Fencepost other = each.build()) {
        FencepostException refused =
            assertThrows(FencepostException.class, () -> other.lock("a"));
        assertEquals("invalid_request", refused.code());
        assertFalse(refused.toString().contains("secret"));
        assertTrue(refused.getCause() == null);
      }
    }
  }

  @Test
  void wrongPortWarnsOnceAndIsInTheError() throws Exception {
    server.close();
    String url = "http://127.0.0.1:" + server.getLocalPort();
    BlockingQueue<String> warnings = new LinkedBlockingQueue<>();
    Logger logger = Logger.getLogger("io.github.fencepost");
    Level before = logger.getLevel();
    logger.setLevel(Level.WARNING);
    logger.setFilter(line -> {
      warnings.add(MessageFormat.format(line.getMessage(), line.getParameters()));
      return false;
    });
    try {
      FencepostException failure =
          assertThrows(FencepostException.NoAnswer.class, () -> fencepost.look("a"));
      assertTrue(failure.getMessage().contains(url + ": ConnectException"), failure.toString());
      assertTrue(failure.getCause() instanceof ConnectException);
      String warning = warnings.poll(20, TimeUnit.SECONDS);
      assertTrue(warning.startsWith(url) && warning.contains("ConnectException"), warning);
      assertEquals(List.of(), List.copyOf(warnings));
    } finally {
      logger.setFilter(null);
      logger.setLevel(before);
    }
  }

  @Test
  void proxyOfThePropertiesIsNotForThisMachine() {
    String before = System.getProperty("http.nonProxyHosts");
    System.setProperty("http.proxyHost", "192.0.2.1");
    System.setProperty("http.nonProxyHosts", "");
    try {
      Proxies proxies = new Proxies(Map.of());
      for (String host : new String[] {"localhost", "a.localhost", "127.0.0.9", "[::1]"}) {
        assertEquals(List.of(Proxy.NO_PROXY), proxies.select(URI.create("http://" + host)));
      }
      assertEquals(Proxy.Type.HTTP, proxies.select(URI.create("http://a")).get(0).type());
    } finally {
      System.clearProperty("http.proxyHost");
      if (before == null) {
        System.clearProperty("http.nonProxyHosts");
      } else {
        System.setProperty("http.nonProxyHosts", before);
      }
    }
  }

  @Test
  void proxyOfTheEnvironmentIsForItsSchemeAndOtherHosts() {
    Proxies proxies = new Proxies(Map.of(
        "HTTPS_PROXY", "http://p:3128", "http_proxy", "q", "NO_PROXY", "a.example, .b.example"));
    Map<String, String> want = Map.of(
        "https://c.example", "p:3128", "http://c.example", "q:80", "https://a.example", "",
        "https://x.a.example", "", "https://b.example", "", "https://x.b.example", "",
        "https://ba.example", "p:3128", "https://127.0.0.1", "");
    want.forEach((url, address) -> {
      InetSocketAddress is = (InetSocketAddress) proxies.select(URI.create(url)).get(0).address();
      assertEquals(address, is == null ? "" : is.getHostString() + ":" + is.getPort(), url);
    });
  }
}
