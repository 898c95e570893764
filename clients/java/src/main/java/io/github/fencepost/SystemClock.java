package io.github.fencepost;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;

/**
 * The machine's clocks, and the threads of one client: one for timers, and a few for what may
 * block. They are daemons, and end some seconds after their last task, so nothing has to stop
 * them.
 */
final class SystemClock implements Clock {
  private static final long RETRY = TimeUnit.MILLISECONDS.toNanos(100);

  final Executor workers;
  private final ScheduledThreadPoolExecutor timers;
  private final Uptime uptime = new Uptime();

  SystemClock() {
    this(TimeUnit.SECONDS.toMillis(5), SystemClock::daemons);
  }

  SystemClock(long lingerMillis, Function<String, ThreadFactory> threads) {
    workers =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, lingerMillis, TimeUnit.MILLISECONDS, new SynchronousQueue<>(),
            threads.apply("fencepost-worker"));
    timers = new ScheduledThreadPoolExecutor(1, threads.apply("fencepost-timer"));
    timers.setRemoveOnCancelPolicy(true);
    timers.setKeepAliveTime(lingerMillis, TimeUnit.MILLISECONDS);
    timers.allowCoreThreadTimeOut(true);
  }

  static ThreadFactory daemons(String name) {
    return task -> {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      return thread;
    };
  }

  @Override
  public Reading read() {
    long monotonic = System.nanoTime();
    return new Reading(
        monotonic, uptime.read(), TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()));
  }

  @Override
  public Runnable after(long nanos, Runnable task) {
    Future<?> timer = timers.schedule(task, nanos, TimeUnit.NANOSECONDS);
    return () -> timer.cancel(false);
  }

  /** The HTTP client ends for good if this throws, so a thread that is refused is tried again. */
  @Override
  public void execute(Runnable task) {
    try {
      workers.execute(task);
    } catch (OutOfMemoryError e) {
      after(RETRY, () -> execute(task));
    }
  }

  @Override
  public <T> T await(CompletableFuture<T> future)
      throws InterruptedException, ExecutionException {
    return future.get();
  }

  /**
   * Linux' boot clock, which Java has no call for. The file stays open: each read at its begin
   * shows the present. It is no FileChannel, which an interrupted thread would close.
   */
  private static final class Uptime {
    private final ReentrantLock lock = new ReentrantLock(); // a virtual thread may wait for it
    private final byte[] text = new byte[64];
    private final RandomAccessFile file = open();

    private static RandomAccessFile open() {
      try {
        return new RandomAccessFile("/proc/uptime", "r");
      } catch (IOException | SecurityException e) {
        return null;
      }
    }

    /** Returns the nanoseconds since the machine started, or 0 where they are not known. */
    long read() {
      if (file == null) {
        return 0;
      }
      lock.lock();
      try {
        file.seek(0);
        return parse(text, file.read(text));
      } catch (IOException e) {
        return 0;
      } finally {
        lock.unlock();
      }
    }
  }

  /** Reads seconds with two decimals, up to the first space. */
  static long parse(byte[] text, int length) {
    long hundredths = 0;
    for (int i = 0; i < length && text[i] != ' '; i++) {
      if (text[i] != '.') {
        hundredths = 10 * hundredths + text[i] - '0';
      }
    }
    return TimeUnit.MILLISECONDS.toNanos(10 * hundredths);
  }
}
