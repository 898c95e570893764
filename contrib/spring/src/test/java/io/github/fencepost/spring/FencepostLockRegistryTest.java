package io.github.fencepost.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fencepost.Fencepost;
import io.github.fencepost.FencepostException;
import io.github.fencepost.Held;
import io.github.fencepost.LockOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.integration.leader.Context;
import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * The cases of RedisLockRegistryTests and ZkLockRegistryTests of Spring Integration, by their
 * names (most of them), and what the Javadoc of Lock and LockRegistry promises.
 */
@Timeout(60)
class FencepostLockRegistryTest {
  private static final Duration TTL = Duration.ofSeconds(2);

  private final String prefix = UUID.randomUUID() + ":";
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private Fencepost fencepost;
  private FencepostLockRegistry registry;
  private FencepostLockRegistry other; // of another process
  private FencepostLock foo;

  @BeforeEach
  void open() {
    fencepost =
        new Fencepost(System.getenv("FENCEPOST_URL"), System.getenv("FENCEPOST_TOKEN"));
    registry = registry();
    other = registry();
    foo = registry.obtain("foo");
  }

  @AfterEach
  void close() {
    threads.shutdownNow();
    fencepost.close();
  }

  private FencepostLockRegistry registry() {
    return new FencepostLockRegistry(fencepost, prefix, TTL);
  }

  /** Takes away the lock of the calling thread. */
  private void lose(FencepostLock lock) {
    release(lock.name(), lock.held());
    await(() -> !isHeld(lock.held()));
  }

  private void release(String name, Held held) {
    fencepost.adopt(name, LockOptions.defaults(), held.token()).release();
  }

  private static boolean isHeld(Held held) {
    try {
      held.check();
      return true;
    } catch (FencepostException e) {
      return false;
    }
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

  private void awaitWaiter() {
    await(() -> fencepost.look(foo.name()).waiting() == 1);
  }

  private boolean elsewhere(Callable<Boolean> call) throws Exception {
    return threads.submit(call).get();
  }

  private static Throwable failure(Future<?> future) {
    return assertThrows(ExecutionException.class, future::get).getCause();
  }

  @Test
  void testLock() {
    for (int i = 0; i < 10; i++) {
      Lock lock = registry.obtain("foo");
      lock.lock();
      lock.unlock();
    }
    assertEquals(0, fencepost.look(foo.name()).holders().size());
  }

  @Test
  void testLockInterruptibly() throws Exception {
    for (int i = 0; i < 10; i++) {
      foo.lockInterruptibly();
      foo.unlock();
    }
  }

  @Test
  void testTryLock() {
    for (int i = 0; i < 10; i++) {
      assertTrue(foo.tryLock());
      foo.unlock();
    }
  }

  @Test
  void testReentrantLock() throws Exception {
    foo.lock();
    FencepostLock again = registry.obtain("foo");
    assertEquals(foo, again);
    again.lock();
    assertEquals(foo.held().fence(), again.held().fence());
    again.unlock();
    assertFalse(elsewhere(foo::tryLock));
    foo.unlock();
    assertTrue(elsewhere(foo::tryLock));
  }

  @Test
  void testReentrantLockInterruptibly() throws Exception {
    foo.lockInterruptibly();
    registry.obtain("foo").lockInterruptibly();
    foo.unlock();
    assertFalse(elsewhere(foo::tryLock));
    foo.unlock();
    assertThrows(IllegalMonitorStateException.class, foo::unlock);
  }

  @Test
  void testTwoLocks() throws Exception {
    Lock bar = registry.obtain("bar");
    assertNotEquals(foo, bar);
    foo.lockInterruptibly();
    bar.lockInterruptibly();
    bar.unlock();
    foo.unlock();
  }

  @Test
  void testTwoThreadsSecondFailsToGetLock() throws Exception {
    foo.lockInterruptibly();
    assertFalse(elsewhere(() -> foo.tryLock(200, TimeUnit.MILLISECONDS)));
    testTwoThreadsWrongOneUnlocks();
  }

  @Test
  void testTwoThreadsWrongOneUnlocks() throws Exception {
    foo.lockInterruptibly();
    Throwable refused = failure(threads.submit(foo::unlock));
    assertEquals(IllegalMonitorStateException.class, refused.getClass());
    assertTrue(refused.getMessage().startsWith("You do not own lock at"));
    foo.unlock();
  }

  @Test
  void testTwoThreads() throws Exception {
    waitFor(foo);
  }

  @Test
  void testTwoThreadsDifferentRegistries() throws Exception {
    waitFor(other.obtain("foo"));
  }

  private void waitFor(FencepostLock second) throws Exception {
    foo.lockInterruptibly();
    long first = foo.held().fence();
    Future<Long> fence = threads.submit(() -> {
      second.lockInterruptibly();
      try {
        return second.held().fence();
      } finally {
        second.unlock();
      }
    });
    awaitWaiter();
    assertFalse(fence.isDone());
    foo.unlock();
    assertTrue(fence.get() > first);
  }

  @Test
  void testExpireTwoRegistries() {
    FencepostLock second = other.obtain("foo");
    assertTrue(foo.tryLock());
    assertFalse(second.tryLock());
    lose(foo);
    assertTrue(second.tryLock());
    assertFalse(foo.tryLock());
    second.unlock();
    assertTrue(foo.tryLock());
    foo.unlock();
  }

  @Test
  void testExceptionOnExpire() {
    assertTrue(foo.tryLock());
    lose(foo);
    assertThrows(ConcurrentModificationException.class, foo::lock);
    String message =
        assertThrows(ConcurrentModificationException.class, foo::unlock).getMessage();
    assertTrue(message.contains("Lock was released in the store due to expiration"));
  }

  @Test
  void testRenewalOnExpire() throws Exception {
    foo.lock();
    pause(2 * TTL.toMillis());
    assertFalse(elsewhere(foo::tryLock));
    foo.unlock();
  }

  @Test
  void testLockWithCustomTtl() {
    foo.lock(TTL.multipliedBy(10));
    assertTrue(foo.held().left().compareTo(TTL.multipliedBy(2)) > 0);
    foo.unlock();
  }

  @Test
  void testTryLockWithCustomTtl() throws Exception {
    assertTrue(foo.tryLock(Duration.ofMillis(100), TTL.multipliedBy(10)));
    assertTrue(foo.held().left().compareTo(TTL.multipliedBy(2)) > 0);
    foo.unlock();
  }

  @Test
  void testEquals() {
    FencepostLock second = other.obtain("foo");
    assertNotEquals(foo, second);
    foo.lock();
    assertFalse(second.tryLock());
    FencepostLock third = new FencepostLockRegistry(fencepost, prefix + "3:", TTL).obtain("foo");
    third.lock();
    third.unlock();
    foo.unlock();
  }

  @Test
  void testThreadLocalListLeaks() {
    for (int i = 0; i < 10; i++) {
      registry.obtain("foo" + i).lock();
    }
    for (int i = 0; i < 10; i++) {
      registry.obtain("foo" + i).unlock();
      assertEquals(null, registry.hold(prefix + "foo" + i));
    }
  }

  @Test
  void multiRedisLockRegistryTest() throws Exception {
    AtomicInteger locked = new AtomicInteger();
    List<Callable<Integer>> calls = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      FencepostLock lock = registry().obtain("foo");
      calls.add(() -> {
        lock.lock();
        int count = locked.incrementAndGet();
        lock.unlock();
        return count;
      });
    }
    for (int i = 0; i < 3; i++) {
      for (Future<Integer> call : threads.invokeAll(calls)) {
        call.get();
      }
    }
    assertEquals(30, locked.get());
  }

  @Test
  void earlyWakeUpTest() throws Exception {
    BlockingQueue<Boolean> granted = new LinkedBlockingQueue<>();
    foo.lock();
    for (int i = 0; i < 2; i++) {
      FencepostLock lock = registry().obtain("foo");
      threads.submit(() -> granted.add(lock.tryLock(10, TimeUnit.SECONDS)));
    }
    await(() -> fencepost.look(foo.name()).waiting() == 2);
    foo.unlock();
    assertTrue(granted.take());
    assertEquals(1, fencepost.look(foo.name()).waiting());
    assertTrue(granted.isEmpty());
  }

  @Test
  void voidLockFailsWhenServerDown() throws Exception {
    try (Fencepost none =
        Fencepost.builder("http://127.0.0.1:1").token("t").retryFor(Duration.ZERO).build()) {
      Lock lock = new FencepostLockRegistry(none, prefix, TTL).obtain("foo");
      assertThrows(
          CannotAcquireLockException.class, () -> lock.tryLock(1, TimeUnit.SECONDS));
    }
  }

  @Test
  void lockWaitsAlthoughItIsInterrupted() throws Exception {
    foo.lock();
    Future<Boolean> interrupted = threads.submit(() -> {
      Thread.currentThread().interrupt();
      foo.lock();
      return Thread.interrupted();
    });
    awaitWaiter();
    foo.unlock();
    assertTrue(interrupted.get());
  }

  @Test
  void interruptEndsLockInterruptibly() throws Exception {
    foo.lock();
    BlockingQueue<Thread> thread = new LinkedBlockingQueue<>();
    Future<Boolean> interrupted = threads.submit(() -> {
      thread.add(Thread.currentThread());
      assertThrows(InterruptedException.class, foo::lockInterruptibly);
      return Thread.interrupted();
    });
    awaitWaiter();
    thread.take().interrupt();
    assertFalse(interrupted.get());
    await(() -> fencepost.look(foo.name()).waiting() == 0);
    foo.unlock();
  }

  @Test
  void interruptedThreadMayTryAndUnlock() throws Exception {
    Thread.currentThread().interrupt();
    assertTrue(foo.tryLock());
    foo.unlock();
    assertTrue(Thread.interrupted());
    await(() -> fencepost.look(foo.name()).holders().isEmpty());
  }

  @Test
  void conditionsAreNotSupported() {
    assertThrows(UnsupportedOperationException.class, foo::newCondition);
  }

  @Test
  void executeLockedRunsUnderLockOrTimesOut() throws Exception {
    registry.executeLocked("foo", () -> {
      assertTrue(isHeld(foo.held()));
      assertEquals(TimeoutException.class, failure(threads.submit(() -> {
        registry.executeLocked("foo", Duration.ofMillis(10), () -> { });
        return null;
      })).getClass());
    });
    assertThrows(IllegalMonitorStateException.class, foo::held);
  }

  @Test
  void threadsThatBlockEachOtherAreRefused() throws Exception {
    FencepostLock bar = registry.obtain("bar");
    foo.lock();
    Future<?> second = threads.submit(() -> {
      bar.lock();
      try {
        foo.lock();
        foo.unlock();
      } finally {
        bar.unlock();
      }
    });
    awaitWaiter();
    CannotAcquireLockException refused =
        assertThrows(CannotAcquireLockException.class, bar::lock);
    assertEquals(FencepostException.Deadlock.class, refused.getCause().getClass());
    foo.unlock();
    second.get();
  }

  @Test
  void anyKeyHasLock() {
    for (Object key : List.of("a b/c", "é", "x".repeat(500), 7, "-")) {
      registry.obtain(key).lock();
      assertEquals(registry.obtain(key), registry.obtain(key));
      registry.obtain(key).unlock();
    }
    assertNotEquals(registry.obtain("a/b"), registry.obtain("a b"));
  }

  @Test
  void leaderInitiatorRevokesLostLeader() throws Exception {
    Set<String> seen = ConcurrentHashMap.newKeySet();
    LockRegistryLeaderInitiator first = initiator(registry, "first", seen);
    first.start();
    await(() -> seen.contains("first leads"));
    LockRegistryLeaderInitiator second = initiator(other, "second", seen);
    second.start();
    release(lost.name(), leader);
    await(() -> seen.contains("first ends"));
    first.stop();
    await(() -> seen.contains("second leads"));
    second.stop();
    await(() -> fencepost.look(lost.name()).holders().isEmpty());
  }

  private volatile FencepostLock lost;
  private volatile Held leader;

  private LockRegistryLeaderInitiator initiator(
      FencepostLockRegistry locks, String id, Set<String> seen) {
    LockRegistryLeaderInitiator initiator =
        new LockRegistryLeaderInitiator(locks, new DefaultCandidate(id, "role") {
          @Override
          public void onGranted(Context context) {
            lost = locks.obtain("role");
            leader = lost.held();
            seen.add(id + " leads");
          }

          @Override
          public void onRevoked(Context context) {
            seen.add(id + " ends");
          }
        });
    initiator.setHeartBeatMillis(100);
    initiator.setBusyWaitMillis(50);
    return initiator;
  }

  @EnableAutoConfiguration
  static class Application {}

  @Test
  void autoConfigurationMakesRegistry() {
    try (ConfigurableApplicationContext context = // FENCEPOST_URL and FENCEPOST_TOKEN are set
        new SpringApplication(Application.class).run("--fencepost.prefix=" + prefix)) {
      Lock lock = context.getBean(LockRegistry.class).obtain("foo");
      lock.lock();
      assertFalse(foo.tryLock());
      lock.unlock();
      assertFalse(context.getBean(FencepostProperties.class).toString()
          .contains(System.getenv("FENCEPOST_TOKEN")));
    }
  }
}
