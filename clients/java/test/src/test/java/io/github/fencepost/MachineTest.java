package io.github.fencepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
}
