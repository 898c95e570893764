package io.github.fencepost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import io.github.fencepost.programs.FirstMinute;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;

/** The client and a server, which clients/with-server started. The last test kills it. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(60)
class ServerTest {
  private static final String API = System.getenv("FENCEPOST_URL");
  private static final String TOKEN = System.getenv("FENCEPOST_TOKEN");
  private static final LockOptions BRIEF = LockOptions.ttl(Duration.ofSeconds(2));

  private Fencepost fencepost;

  @BeforeEach
  void open() {
    fencepost = new Fencepost(API, TOKEN);
  }

  @AfterEach
  void close() {
    fencepost.close();
  }

  private static void await(BooleanSupplier condition) throws InterruptedException {
    for (int i = 0; !condition.getAsBoolean(); i++) {
      assertTrue(i < 1000, "it does not come true");
      TimeUnit.MILLISECONDS.sleep(20);
    }
  }

  private boolean waiting(String lock, int waiters) {
    return fencepost.look(lock).waiting() == waiters;
  }

  @Test
  void heldLockOutlivesItsTtlAndRefusesATry() throws Exception {
    Held held = fencepost.tryLock("java:held", BRIEF.holder("w1"));
    FencepostException.LockHeld busy =
        assertThrows(
            FencepostException.LockHeld.class, () -> fencepost.tryLock("java:held", BRIEF));
    assertEquals("w1", busy.holders().get(0).holder());
    assertFalse(busy.requestId().isEmpty());
    assertTrue(busy.getMessage().contains(busy.requestId()));
    CompletableFuture<Held> next = async(() -> fencepost.lock("java:held", BRIEF));
    TimeUnit.SECONDS.sleep(4); // two leases
    held.check();
    assertFalse(next.isDone());
    held.release();
    assertTrue(next.get().fence() > held.fence());
    next.get().release();
    assertEquals(
        "released", assertThrows(FencepostException.class, held::check).code());
  }

  @Test
  void anyOfPoolIsTaken() throws Exception {
    List<Claim> pool = pool("java:any:2", "java:any:0", "java:any:1");
    Held first = fencepost.lockAny(pool, 1, LockOptions.defaults());
    assertEquals("java:any:2", first.name());
    Held others = fencepost.tryLockAny(pool, 2, LockOptions.defaults());
    assertThrows(
        FencepostException.LockHeld.class,
        () -> fencepost.tryLockAny(pool, 1, LockOptions.defaults()));
    CompletableFuture<Held> next =
        async(() -> fencepost.lockAny(pool, 1, LockOptions.defaults()));
    await(() -> waiting("java:any:0", 1));
    others.release();
    assertEquals(List.of("java:any:0"), List.copyOf(next.get().fences().keySet()));
    next.get().release();
    first.release();
  }

  private static List<Claim> pool(String... names) {
    return Stream.of(names).map(Claim::exclusive).collect(Collectors.toList());
  }

  @Test
  void manyThreadsShareAPool() throws Exception {
    List<Claim> pool = pool("java:pool:0", "java:pool:1", "java:pool:2", "java:pool:3");
    Map<String, Long> newest = new ConcurrentHashMap<>();
    Set<String> holders = ConcurrentHashMap.newKeySet();
    List<CompletableFuture<Boolean>> calls = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      calls.add(async(() -> {
        try (Held held = fencepost.lockAny(pool, 1, LockOptions.defaults())) {
          boolean alone = holders.add(held.name());
          Long before = newest.put(held.name(), held.fence());
          holders.remove(held.name());
          return alone && (before == null || before < held.fence());
        }
      }));
    }
    for (CompletableFuture<Boolean> call : calls) {
      assertTrue(call.get());
    }
    assertEquals(4, newest.size());
  }

  @Test
  void semaphoreHasPermitsAndEachEntryALimit() {
    Held two = fencepost.tryLock("java:permits", BRIEF.semaphore(3, 2));
    assertThrows(
        FencepostException.LockHeld.class,
        () -> fencepost.tryLock("java:permits", BRIEF.semaphore(3, 2)));
    fencepost.tryLock("java:permits", BRIEF.semaphore(3)).release();
    fencepost.tryLock("java:permits", BRIEF.semaphore(4, 2)).release();
    two.release();
  }

  @Test
  void onlyNewestWaits() throws Exception {
    Held held = fencepost.tryLock("java:newest", LockOptions.defaults());
    LockOptions options = LockOptions.defaults().onlyNewest();
    CompletableFuture<Held> older = async(() -> fencepost.lock("java:newest", options));
    await(() -> waiting("java:newest", 1));
    CompletableFuture<Held> newer = async(() -> fencepost.lock("java:newest", options));
    ExecutionException failed = assertThrows(ExecutionException.class, older::get);
    assertEquals(FencepostException.Superseded.class, failed.getCause().getClass());
    held.release();
    newer.get().release();
  }

  @Test
  void lockIsKeptForItsLeastTime() {
    long begun = System.nanoTime();
    Held held = fencepost.lock("java:least", LockOptions.defaults().atLeast(Duration.ofSeconds(2)));
    held.close();
    try (Held later = fencepost.lock("java:least")) {
      assertTrue(System.nanoTime() - begun >= TimeUnit.SECONDS.toNanos(2));
      assertTrue(later.fence() > held.fence());
    }
  }

  private static <T> CompletableFuture<T> async(java.util.function.Supplier<T> call) {
    return CompletableFuture.supplyAsync(call, task -> new Thread(task).start());
  }

  @Test
  void tokenIsAdoptedByAnotherClientAndShownNowhere() {
    Held held = fencepost.tryLock("java:adopt", BRIEF);
    assertTrue(held.toString().contains("java:adopt"));
    assertFalse(held.toString().contains(held.token()));
    fencepost.close();
    try (Fencepost other = new Fencepost(API, TOKEN + "\n");
        Held adopted = other.adopt("java:adopt", BRIEF, held.token())) {
      assertEquals(held.fence(), adopted.fence());
      assertThrows(
          FencepostException.LockHeld.class, () -> other.tryLock("java:adopt", BRIEF));
    }
  }

  @Test
  void threadsThatAreRefusedDoNotEndRenewals() throws Exception {
    AtomicBoolean refuses = new AtomicBoolean();
    AtomicInteger refused = new AtomicInteger();
    SystemClock clock = new SystemClock(1, name -> task -> {
      if (refuses.get() && name.equals("fencepost-worker")) {
        refused.incrementAndGet();
        throw new OutOfMemoryError("unable to create native thread");
      }
      return SystemClock.daemons(name).newThread(task);
    });
    try (Fencepost other = Fencepost.builder(API).token(() -> TOKEN).clock(clock).build();
        Held held = other.tryLock("java:threads", BRIEF)) {
      refuses.set(true);
      await(() -> refused.get() > 0);
      refuses.set(false);
      Duration left = held.left();
      await(() -> held.left().compareTo(left) > 0);
      held.check();
    }
  }

  @Test
  void timerThatIsRefusedLeavesNoLockBehind() {
    SystemClock real = new SystemClock();
    AtomicInteger timers = new AtomicInteger();
    Clock clock = new Clock() {
      @Override
      public Reading read() {
        return real.read();
      }

      @Override
      public Runnable after(long nanos, Runnable task) {
        Runnable cancel = real.after(nanos, task);
        if (timers.incrementAndGet() == 2) { // the first is that of the request
          throw new OutOfMemoryError("unable to create native thread");
        }
        return cancel;
      }

      @Override
      public void execute(Runnable task) {
        real.execute(task);
      }

      @Override
      public <T> T await(CompletableFuture<T> future)
          throws InterruptedException, ExecutionException {
        return real.await(future);
      }
    };
    try (Fencepost other = Fencepost.builder(API).token(TOKEN).clock(clock).build()) {
      assertThrows(OutOfMemoryError.class,
          () -> other.tryLock("java:timer", LockOptions.ttl(Duration.ofMinutes(2))));
      fencepost.lock("java:timer", BRIEF.wait(Duration.ofSeconds(20))).close();
    }
  }

  @Test
  void holderRenewsWhileThreeHundredCallersWait() throws Exception {
    holdsWhileOthersWait("java:waits", Fencepost.builder(API).token(TOKEN));
    holdsWhileOthersWait(
        "java:waits:2", Fencepost.builder(API).token(TOKEN).http(HttpClient.newHttpClient()));
  }

  /** The server speaks HTTP/2, and so does the client that the user brings. */
  @Test
  void holderRenewsWhileThreeHundredCallersWaitOverTls() throws Exception {
    try (TlsServer server = new TlsServer()) {
      HttpClient http = HttpClient.newBuilder().sslContext(server.trust()).build();
      holdsWhileOthersWait(
          "java:waits", Fencepost.builder(server.url()).token(server.token()).http(http));
    }
  }

  private static void holdsWhileOthersWait(String lock, Fencepost.Builder builder)
      throws Exception {
    LockOptions options = LockOptions.ttl(Duration.ofSeconds(12));
    LockOptions patient = options.wait(Duration.ofMinutes(5));
    try (Fencepost client = builder.build(); Held held = client.tryLock(lock, options)) {
      List<CompletableFuture<Held>> waits = new ArrayList<>();
      while (waits.size() < 300) {
        for (int i = 0; i < 20; i++) { // a burst of TLS would take all of the processor
          waits.add(async(() -> client.lock(lock, patient)));
        }
        await(() -> client.look(lock).waiting() == waits.size());
      }
      Duration left = held.left();
      await(() -> held.left().compareTo(left) > 0); // it was renewed
      held.check();
      assertTrue(waits.stream().noneMatch(CompletableFuture::isDone));
    }
  }

  @Test
  void setIsAllOrNothing() {
    List<Claim> claims = List.of(Claim.exclusive("java:b"), Claim.shared("java:a"));
    try (Held held = fencepost.lockSet(claims, BRIEF)) {
      assertEquals(2, held.fences().size());
      assertThrows(
          FencepostException.LockHeld.class, () -> fencepost.tryLockSet(claims, BRIEF));
      fencepost.tryLock("java:a", BRIEF.shared()).close();
    }
    fencepost.tryLock("java:b", BRIEF).close();
  }

  @Test
  void sharedHoldersAndPlacesOfASemaphoreAreHeldTogether() {
    try (Held one = fencepost.tryLock("java:shared", BRIEF.shared());
        Held two = fencepost.tryLock("java:shared", BRIEF.shared())) {
      assertTrue(two.fence() > one.fence());
      assertThrows(
          FencepostException.LockHeld.class, () -> fencepost.tryLock("java:shared", BRIEF));
    }
    LockOptions places = BRIEF.semaphore(2);
    try (Held one = fencepost.tryLock("java:places", places);
        Held two = fencepost.tryLock("java:places", places)) {
      assertTrue(two.fence() > one.fence());
      assertThrows(
          FencepostException.LockHeld.class, () -> fencepost.tryLock("java:places", places));
    }
  }

  /** Calls 300 times at once, and returns how many held one lock at the same time. */
  private int crowd(IntFunction<String> lock) throws Exception {
    AtomicInteger holders = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<CompletableFuture<Void>> calls = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      String name = lock.apply(i);
      calls.add(CompletableFuture.runAsync(() -> {
        try (Held held = fencepost.lock(name)) {
          held.check();
          most.accumulateAndGet(holders.incrementAndGet(), Math::max);
          holders.decrementAndGet();
        }
      }, task -> new Thread(task).start()));
    }
    for (CompletableFuture<Void> call : calls) {
      call.get();
    }
    return most.get();
  }

  @Test
  void threeHundredCallersHoldOneLockOneAfterTheOther() throws Exception {
    assertEquals(1, crowd(i -> "java:crowd"));
  }

  @Test
  void threeHundredCallersHoldAsManyLocks() throws Exception {
    crowd(i -> "java:crowd:" + i);
    assertFalse(fencepost.list(LockFilter.all().prefix("java:crowd:")).iterator().hasNext());
  }

  @Test
  void interruptEndsAWaitAndLeavesTheQueue() throws Exception {
    Held held = fencepost.lock("java:interrupt");
    CompletableFuture<Boolean> ended = new CompletableFuture<>();
    Thread waits = new Thread(() -> {
      try {
        fencepost.lock("java:interrupt").close();
      } catch (FencepostException.Cancelled e) {
        ended.complete(Thread.currentThread().isInterrupted());
      }
    });
    waits.start();
    await(() -> waiting("java:interrupt", 1));
    waits.interrupt();
    assertTrue(ended.get(), "the thread stays interrupted");
    // The client repeats the acquire with its key. It is granted, and released at once.
    held.release();
    fencepost.lock("java:interrupt", BRIEF.wait(Duration.ofSeconds(10))).close();
    await(() -> waiting("java:interrupt", 0));
  }

  /** As by Ctrl-C: the program closes the client and exits. Nothing answers, so it has to wait. */
  @Test
  void closeByAnInterruptedThreadWaitsForItsWaitToLeave() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    HttpServer silent =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    silent.createContext("/", exchange -> asked.countDown());
    silent.start();
    CompletableFuture<Duration> closed = new CompletableFuture<>();
    Thread waits = new Thread(() -> {
      Fencepost other = new Fencepost("http://127.0.0.1:" + silent.getAddress().getPort(), TOKEN);
      try {
        other.lock("java:interrupt:close").close();
      } catch (FencepostException.Cancelled e) {
        long began = System.nanoTime();
        other.close();
        if (Thread.currentThread().isInterrupted()) {
          closed.complete(Duration.ofNanos(System.nanoTime() - began));
        }
      }
    });
    waits.start();
    asked.await();
    waits.interrupt();
    Duration took = closed.get(10, TimeUnit.SECONDS);
    silent.stop(0);
    assertTrue(took.toMillis() >= 1000, "it waited for " + took);
  }

  @Test
  void closeEndsWaitsAndLosesHeldLocks() throws Exception {
    Fencepost other = new Fencepost(API, TOKEN);
    Held held = other.lock("java:close");
    CompletableFuture<LockLostException> lost = new CompletableFuture<>();
    held.onLost(lost::complete);
    CompletableFuture<Held> waits = async(() -> other.lock("java:close"));
    await(() -> waiting("java:close", 1));
    other.close();
    await(() -> waiting("java:close", 0)); // before the lease of the entry ends
    assertEquals(LockLostException.CLOSED, lost.get().reason());
    assertTrue(waits.handle((h, e) -> e.getCause()).get() instanceof FencepostException.Cancelled);
    assertThrows(FencepostException.Cancelled.class, () -> other.look("java:close"));
  }

  @Test
  void eventsTellWhatHappensAndEndWithTheirClose() throws Exception {
    EventFilter filter = EventFilter.all().types("lock.released").locks("java:events");
    Events events = fencepost.events(filter);
    CompletableFuture<Event> first = async(events::next);
    for (int i = 0; !first.isDone(); i++) { // the stream may begin after a release
      assertTrue(i < 500);
      fencepost.tryLock("java:events", BRIEF).close();
      TimeUnit.MILLISECONDS.sleep(10);
    }
    assertEquals("java:events", first.get().lock());
    CompletableFuture<Void> reads = async(() -> {
      events.forEachRemaining(event -> {});
      return null;
    });
    events.close();
    reads.get();
  }

  @Test
  void callbackIsVerifiedAndItsGrantClaimed() throws Exception {
    HttpResponse<String> rotated =
        HttpClient.newHttpClient().send(
            HttpRequest.newBuilder(URI.create(API + "/webhooks/callback-secret/rotate"))
                .header("Authorization", "Bearer " + TOKEN)
                .POST(HttpRequest.BodyPublishers.noBody()).build(),
            HttpResponse.BodyHandlers.ofString());
    String secret = Json.text(Json.object(rotated.body().getBytes()), "secret");
    BlockingQueue<Event> callbacks = new LinkedBlockingQueue<>();
    HttpServer receiver =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    receiver.createContext("/", request -> {
      byte[] body = request.getRequestBody().readAllBytes();
      callbacks.add(Webhooks.verify(request.getRequestHeaders()::getFirst, body, secret));
      request.sendResponseHeaders(204, -1);
      request.close();
    });
    receiver.start();
    try {
      String url = "http://127.0.0.1:" + receiver.getAddress().getPort() + "/granted";
      LockOptions options = LockOptions.ttl(Duration.ofSeconds(15));
      Held before = fencepost.lock("java:async", options);
      Pending pending = fencepost.asyncAcquire("java:async", options, url);
      Pending leaves = fencepost.asyncAcquire("java:async", options, url);
      await(() -> waiting("java:async", 2));
      leaves.leave();
      await(() -> waiting("java:async", 1));
      before.release();
      Event event = callbacks.poll(30, TimeUnit.SECONDS);
      assertEquals(pending.id(), event.entryId());
      try (Held held = fencepost.claim(event, options)) {
        assertEquals(event.fence(), held.fence());
      }
    } finally {
      receiver.stop(0);
    }
  }

  @Test
  void leaderHasATermAndResigns() throws Exception {
    long[] term = new long[1];
    fencepost.lead("java:lead", BRIEF, held -> term[0] = held.fence());
    assertTrue(term[0] > 0);
    IOException failure =
        assertThrows(IOException.class, () -> fencepost.lead("java:lead", BRIEF, held -> {
          throw new IOException("the work fails");
        }));
    assertEquals("the work fails", failure.getMessage());
    fencepost.tryLock("java:lead", BRIEF).close();
  }

  @Test
  void staleWriteIsReported() {
    fencepost.staleWrite(
        StaleWrite.of("java:stale").presented(1).known(2).resource("db-7"));
  }

  @Test
  void bearerTokenIsInNoError() {
    String secret = "very-secret";
    assertFalse(
        assertThrows(IllegalArgumentException.class, () -> new Fencepost(API, secret + "\nX: y"))
            .getMessage().contains(secret));
    try (Fencepost wrong = new Fencepost(API, secret)) {
      FencepostException refused =
          assertThrows(FencepostException.class, () -> wrong.look("java:held"));
      assertEquals("unauthenticated", refused.code());
      assertFalse(refused.toString().contains(secret));
    }
  }

  @Test
  void thousandHeldLocksNeedFewThreads() {
    int before = Thread.activeCount(); // those of other tests end later
    List<Held> all = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      all.add(fencepost.tryLock("java:many:" + i, LockOptions.defaults()));
    }
    int threads = Thread.activeCount() - before;
    assertTrue(threads < 100, threads + " threads");
    all.parallelStream().forEach(Held::close);
  }

  /** The code of the README is the program, but for its imports and how it is indented. */
  @Test
  void readmeHasTheProgram() throws IOException {
    String readme = Files.readString(Paths.get("..", "README.md"));
    Matcher block = Pattern.compile("(?s)```java\n(.*?)```").matcher(readme);
    assertTrue(block.find());
    assertTrue(block.group(1).lines().count() <= 20);
    String program =
        Files.readString(
            Paths.get("src/main/java/io/github/fencepost/programs/FirstMinute.java"));
    List<String> lines = program.lines().map(String::strip).collect(Collectors.toList());
    block.group(1).lines().map(String::strip).filter(line -> !line.startsWith("import "))
        .forEach(line -> assertTrue(lines.contains(line), line));
  }

  private static String output(Runnable meanwhile) throws Exception {
    PrintStream before = System.out;
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    System.setOut(new PrintStream(text, true, StandardCharsets.UTF_8));
    try {
      CompletableFuture<Void> program = async(() -> {
        try {
          FirstMinute.main(new String[0]);
        } catch (InterruptedException e) {
          throw new AssertionError(e);
        }
        return null;
      });
      await(() -> text.toString(StandardCharsets.UTF_8).contains("held"));
      meanwhile.run();
      program.get();
    } finally {
      System.setOut(before);
    }
    return text.toString(StandardCharsets.UTF_8);
  }

  @Test
  @Order(Integer.MAX_VALUE - 1)
  void programOfTheReadmeHoldsRenewsAndReleases() throws Exception {
    String text = output(() -> {});
    assertEquals(5, text.lines().count(), text);
    fencepost.tryLock("orders:42", BRIEF).close();
  }

  @Test
  @Order(Integer.MAX_VALUE)
  void killedServerLosesTheLockBeforeItsLeaseEnds() throws Exception {
    Held held = fencepost.lock("java:killed", BRIEF);
    CompletableFuture<LockLostException> lost = new CompletableFuture<>();
    held.onLost(lost::complete);
    CompletableFuture<Boolean> interrupted = async(() -> {
      try {
        held.interruptOnLost();
        TimeUnit.SECONDS.sleep(30);
        return false;
      } catch (InterruptedException e) {
        return true;
      }
    });
    String text = output(() ->
        ProcessHandle.of(Long.parseLong(System.getenv("SERVER_PID"))).get().destroyForcibly());
    long killed = System.nanoTime();
    assertTrue(text.contains("stop: orders:42 is lost: deadline: no renewal succeeded for "), text);
    assertTrue(text.contains(API) && text.contains("ConnectException"), text);
    assertEquals(LockLostException.DEADLINE, lost.get().reason());
    assertTrue(interrupted.get());
    assertTrue(System.nanoTime() - killed < 3_000_000_000L);
    assertThrows(LockLostException.class, held::close);
    // The work's own exception is what the block throws, with the loss as the suppressed one.
    IllegalStateException work =
        assertThrows(IllegalStateException.class, () -> {
          try (held) {
            throw new IllegalStateException("the work failed");
          }
        });
    assertTrue(work.getSuppressed()[0] instanceof LockLostException);
  }
}
