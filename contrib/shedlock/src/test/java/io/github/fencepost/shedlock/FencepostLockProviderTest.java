package io.github.fencepost.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fencepost.Fencepost;
import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockInfo;
import io.github.fencepost.LockOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/**
 * The cases of AbstractLockProviderIntegrationTest and
 * AbstractExtensibleLockProviderIntegrationTest of ShedLock, by their names, and what ShedLock does
 * not have: the fence and the loss.
 */
@Timeout(60)
class FencepostLockProviderTest {
  private static final Duration SHORT = Duration.ofSeconds(2);
  private static final Duration LONG = Duration.ofMinutes(5);
  private static final Duration NONE = Duration.ZERO;

  private final String name = UUID.randomUUID().toString();
  private Fencepost fencepost;
  private FencepostLockProvider provider;

  @BeforeEach
  void open() {
    fencepost =
        new Fencepost(System.getenv("FENCEPOST_URL"), System.getenv("FENCEPOST_TOKEN"));
    provider = new FencepostLockProvider(fencepost);
  }

  @AfterEach
  void close() {
    fencepost.close();
  }

  @Test
  void shouldCreateLock() {
    SimpleLock lock = lock(LONG);
    lock.unlock();
    assertUnlocked();
  }

  @Test
  void shouldNotReturnSecondLock() {
    SimpleLock lock = lock(LONG);
    assertTrue(tryLock(LONG, NONE).isEmpty());
    lock.unlock();
  }

  @Test
  void shouldCreateTwoIndependentLocks() {
    SimpleLock first = lock(LONG);
    SimpleLock second = provider.lock(configuration(name + "-2", LONG, NONE)).orElseThrow();
    first.unlock();
    second.unlock();
  }

  @Test
  void shouldLockTwiceInARow() {
    lock(LONG).unlock();
    lock(LONG).unlock();
  }

  @Test
  void shouldTimeout() {
    lock(Duration.ofMillis(50));
    assertUnlocked();
    lock(LONG).unlock();
  }

  @Test
  void shouldBeAbleToLockRightAfterUnlock() {
    for (int i = 0; i < 10; i++) {
      SimpleLock lock = lock(LONG);
      assertTrue(tryLock(LONG, NONE).isEmpty());
      lock.unlock();
    }
  }

  @Test
  void fuzzTestShouldPass() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    int[] counters = new int[2]; // each under the lock of its own
    List<CompletableFuture<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int counter = i % 2;
      int times = i == 0 ? 10 : 100;
      tasks.add(CompletableFuture.runAsync(() -> count(counters, counter, times), threads));
    }
    for (CompletableFuture<Void> task : tasks) {
      task.get();
    }
    threads.shutdown();
    assertEquals(310, counters[0]);
    assertEquals(400, counters[1]);
  }

  private void count(int[] counters, int counter, int times) {
    DefaultLockingTaskExecutor executor = new DefaultLockingTaskExecutor(provider);
    for (int[] done = new int[1]; done[0] < times;) {
      executor.executeWithLock((Runnable) () -> {
        int read = counters[counter];
        pause(1);
        counters[counter] = read + 1;
        done[0]++;
      }, configuration(name + counter, LONG, NONE));
    }
  }

  @Test
  void shouldLockAtLeastFor() {
    tryLock(SHORT.multipliedBy(2), SHORT).orElseThrow().unlock();
    assertTrue(tryLock(LONG, NONE).isEmpty());
    assertUnlocked();
    lock(LONG).unlock();
  }

  @Test
  void shouldBeAbleToExtendLock() {
    SimpleLock extended = extend(lock(SHORT), NONE);
    pause(SHORT.toMillis());
    assertLocked();
    extended.unlock();
    assertUnlocked();
  }

  @Test
  void shouldBeAbleToExtendMultipleTimes() {
    SimpleLock extended = extend(extend(extend(lock(SHORT), NONE), NONE), NONE);
    pause(SHORT.toMillis());
    assertLocked();
    extended.unlock();
    assertUnlocked();
  }

  @Test
  void shouldNotBeAbleToExtendUnlockedLock() {
    SimpleLock lock = lock(SHORT);
    lock.unlock();
    assertUnlocked();
    assertInvalid(() -> lock.extend(LONG, NONE));
  }

  @Test
  void shouldNotBeAbleToExtendExpiredLock() {
    SimpleLock lock = tryLock(Duration.ofMillis(2), NONE).orElseThrow();
    pause(4);
    assertTrue(lock.extend(LONG, NONE).isEmpty());
    assertUnlocked();
  }

  @Test
  void shouldBeAbleToExtendAtLeast() {
    extend(lock(LONG), LONG).unlock();
    assertLocked();
  }

  @Test
  void lockCanNotBeExtendedTwice() {
    SimpleLock lock = lock(LONG);
    extend(lock, NONE);
    assertInvalid(() -> lock.extend(LONG, NONE));
  }

  @Test
  void lockCanNotBeUnlockedAfterExtending() {
    SimpleLock lock = lock(LONG);
    extend(lock, NONE);
    assertInvalid(lock::unlock);
  }

  @Test
  void taskFindsItsFence() {
    new DefaultLockingTaskExecutor(provider).executeWithLock((Runnable) () ->
        assertEquals(look().holders().get(0).fence(), provider.held(name).fence()),
        configuration(name, LONG, NONE));
    assertThrows(NoSuchElementException.class, () -> provider.held(name));
  }

  @Test
  void unlockReportsLoss() {
    SimpleLock lock = lock(SHORT);
    lose(provider.held(name).interruptOnLost());
    assertThrows(LockException.class, lock::unlock);
    assertFalse(Thread.interrupted());
  }

  @Test
  void lossAfterTaskInterruptsNoThreadOfOthers() {
    SimpleLock lock = tryLock(SHORT, SHORT).orElseThrow();
    Held held = provider.held(name).interruptOnLost();
    lock.unlock();
    lose(held);
    assertFalse(Thread.interrupted());
  }

  private void lose(Held held) {
    fencepost.adopt(name, LockOptions.defaults(), held.token()).release();
    for (boolean lost = false; !lost;) {
      try {
        held.check();
        Thread.onSpinWait();
      } catch (FencepostException e) {
        lost = true;
      }
    }
  }

  private SimpleLock lock(Duration atMost) {
    return tryLock(atMost, NONE).orElseThrow();
  }

  private Optional<SimpleLock> tryLock(Duration atMost, Duration atLeast) {
    Optional<SimpleLock> lock = provider.lock(configuration(name, atMost, atLeast));
    if (atMost.compareTo(SHORT) >= 0) {
      assertLocked();
    }
    return lock;
  }

  private static LockConfiguration configuration(
      String name, Duration atMost, Duration atLeast) {
    return new LockConfiguration(ClockProvider.now(), name, atMost, atLeast);
  }

  private static SimpleLock extend(SimpleLock lock, Duration atLeast) {
    return lock.extend(LONG, atLeast).orElseThrow();
  }

  private void assertLocked() {
    assertEquals(1, look().holders().size());
  }

  private void assertUnlocked() {
    await(() -> look().holders().isEmpty());
  }

  private LockInfo look() {
    return fencepost.look(name);
  }

  private static void assertInvalid(Executable operation) {
    assertThrows(IllegalStateException.class, operation);
  }

  private static void await(BooleanSupplier condition) {
    for (int i = 0; !condition.getAsBoolean(); i++) {
      assertTrue(i < 1000, "it does not come true");
      pause(20);
    }
  }

  private static void pause(long millis) {
    try {
      TimeUnit.MILLISECONDS.sleep(millis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
