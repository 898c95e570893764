import java.io.*;
import java.util.concurrent.TimeUnit;
import java.util.regex.*;
import org.redisson.Redisson;
import org.redisson.api.*;
import org.redisson.config.Config;

/** A client of Redisson's RLock, its fair lock or its RFencedLock, which the watchdog renews. */
class Worker {
  public static void main(String[] args) throws Exception {
    long ttl = Long.parseLong(System.getenv("FENCETEST_TTL_MS"));
    Config config = new Config().setLockWatchdogTimeout(ttl);
    config.useSingleServer().setAddress("redis://" + System.getenv("FENCETEST_SERVER"));
    RedissonClient redisson = Redisson.create(config);
    say("ready", "");
    RLock lock = null;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      try {
        if (field(line, "do").equals("acquire")) {
          String name = field(line, "name");
          switch (args[0]) {
            case "fair" -> lock = redisson.getFairLock(name);
            case "fenced" -> lock = redisson.getFencedLock(name);
            default -> lock = redisson.getLock(name);
          }
          acquire(lock, Long.parseLong(field(line, "wait_ms")));
        } else if (field(line, "do").equals("check")) {
          say(lock.isHeldByCurrentThread() ? "held" : "lost", "");
        } else {
          lock.unlock();
          say("released", "");
        }
      } catch (IllegalMonitorStateException e) { // of unlock: not locked by this thread
        say("lost", "");
      } catch (Exception e) {
        say("error", ",\"text\":\"" + e.toString().replaceAll("[\"\\\\\\s]+", " ") + "\"");
      }
    }
    Runtime.getRuntime().halt(0);
  }

  static void acquire(RLock lock, long wait) throws InterruptedException {
    if (lock instanceof RFencedLock fenced) {
      Long fence = fenced.tryLockAndGetToken(wait, TimeUnit.MILLISECONDS);
      say(fence == null ? "not_held" : "held", fence == null ? "" : ",\"fence\":\"" + fence + "\"");
    } else {
      say(lock.tryLock(wait, TimeUnit.MILLISECONDS) ? "held" : "not_held", "");
    }
  }

  static void say(String event, String more) {
    System.out.println("{\"event\":\"" + event + "\"" + more + "}");
  }

  static String field(String line, String name) {
    Matcher m = Pattern.compile("\"" + name + "\":\\s*\"?([^\",}]*)").matcher(line);
    return m.find() ? m.group(1) : "";
  }
}
