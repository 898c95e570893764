package io.github.fencepost;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

/**
 * Time that passes when the runner says so, and the threads of calls. One of them runs at a time: a
 * thread that waits hands over to the runner.
 */
final class VirtualTime implements Clock {
  private static final long SECOND = 1_000_000_000;

  private final boolean bootClock;
  private final PriorityQueue<Timer> timers =
      new PriorityQueue<>(Comparator.comparing((Timer t) -> t.due).thenComparing(t -> t.number));
  private final List<Caller> callers = new ArrayList<>();
  private final ThreadLocal<Caller> self = new ThreadLocal<>();

  private long now;
  private long slept; // that the monotonic clock does not show
  private long set; // by which the wall clock was
  private long numbers;

  VirtualTime(boolean bootClock) {
    this.bootClock = bootClock;
  }

  private static final class Timer {
    final long due;
    final long number;
    final Runnable task;

    Timer(long due, long number, Runnable task) {
      this.due = due;
      this.number = number;
      this.task = task;
    }
  }

  /** A thread of the program that uses the client. */
  private static final class Caller {
    volatile boolean go;
    final Semaphore back = new Semaphore(0);
    Thread thread;
    CompletableFuture<?> awaits; // null while it runs
    boolean over;

    boolean canRun() {
      return !over && (awaits.isDone() || thread.isInterrupted());
    }
  }

  double seconds() {
    return (double) now / SECOND;
  }

  void suspend(double seconds) {
    slept += nanos(seconds);
  }

  void setWall(double seconds) {
    set += nanos(seconds);
  }

  /** Lets time pass in which nothing of the process runs. */
  void pause(double seconds) {
    now += nanos(seconds);
  }

  static long nanos(double seconds) {
    return Math.round(seconds * SECOND);
  }

  @Override
  public Reading read() {
    long boot = bootClock ? 60 * SECOND + now + slept : 0;
    return new Reading(now, boot, 3600 * SECOND + now + slept + set);
  }

  @Override
  public Runnable after(long nanos, Runnable task) {
    Timer timer = new Timer(now + Math.max(0, nanos), numbers++, task);
    timers.add(timer);
    return () -> timers.remove(timer);
  }

  @Override
  public void execute(Runnable task) {
    task.run();
  }

  @Override
  public <T> T await(CompletableFuture<T> future)
      throws InterruptedException, ExecutionException {
    Caller caller = self.get();
    caller.awaits = future;
    if (!future.isDone()) {
      caller.back.release();
      while (!caller.go) {
        LockSupport.park(caller); // unlike others, it keeps an interrupt
      }
      caller.go = false;
    }
    if (!future.isDone() && Thread.interrupted()) {
      throw new InterruptedException();
    }
    return future.get();
  }

  /** Starts a thread, which runs until it waits. */
  Thread start(Runnable call) {
    Caller caller = new Caller();
    callers.add(caller);
    caller.thread = new Thread(() -> {
      self.set(caller);
      try {
        call.run();
      } finally {
        caller.over = true;
        caller.back.release();
      }
    });
    caller.thread.start();
    caller.back.acquireUninterruptibly();
    settle();
    return caller.thread;
  }

  /** Lets all threads run that can, one after the other, until all wait. */
  void settle() {
    for (int i = 0; i < callers.size(); i++) {
      Caller caller = callers.get(i);
      if (caller.canRun()) {
        caller.go = true;
        LockSupport.unpark(caller.thread);
        caller.back.acquireUninterruptibly();
        i = -1; // it may have let others run
      }
    }
  }

  /** Runs what is due up to then. */
  void advance(double to) {
    long until = nanos(to);
    settle();
    while (!timers.isEmpty() && timers.peek().due <= Math.max(until, now)) {
      Timer timer = timers.remove();
      now = Math.max(now, timer.due);
      timer.task.run();
      settle();
    }
    now = Math.max(now, until);
  }

  /** Interrupts all threads, and reports whether they end within an hour. */
  boolean end() {
    callers.forEach(caller -> caller.thread.interrupt());
    advance(seconds() + 3600);
    return callers.stream().allMatch(caller -> caller.over);
  }
}
