import java.io.*;
import java.util.concurrent.TimeUnit;
import java.util.regex.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A client of Curator's InterProcessMutex, with the listener that its documents recommend. */
class Worker {
  static volatile ConnectionState state = ConnectionState.CONNECTED;
  static volatile boolean held;

  public static void main(String[] args) throws Exception {
    int ttl = Integer.parseInt(System.getenv("FENCETEST_TTL_MS")); // of the session
    CuratorFramework client = CuratorFrameworkFactory.newClient(
        System.getenv("FENCETEST_SERVER"), ttl, ttl, new ExponentialBackoffRetry(1000, 3));
    client.getConnectionStateListenable().addListener((c, changed) -> {
      state = changed;
      if (held && changed == ConnectionState.LOST) {
        held = false;
        say("lost", "");
      }
    });
    client.start();
    client.blockUntilConnected();
    say("ready", "");
    InterProcessMutex mutex = null;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      try {
        boolean was = held;
        if (field(line, "do").equals("acquire")) {
          mutex = new InterProcessMutex(client, "/locks/" + field(line, "name"));
          held = mutex.acquire(Long.parseLong(field(line, "wait_ms")), TimeUnit.MILLISECONDS);
          say(held ? "held" : "not_held", "");
        } else if (field(line, "do").equals("check")) {
          boolean sure = !client.getConnectionStateErrorPolicy().isErrorState(state);
          say(was && sure ? "held" : "lost", "");
        } else {
          held = false;
          mutex.release();
          say(was ? "released" : "lost", "");
        }
      } catch (Exception e) {
        say("error", ",\"text\":\"" + e.toString().replaceAll("[\"\\\\\\s]+", " ") + "\"");
      }
    }
    Runtime.getRuntime().halt(0); // without an end of the session
  }

  static void say(String event, String more) {
    System.out.println("{\"event\":\"" + event + "\"" + more + "}");
  }

  static String field(String line, String name) {
    Matcher m = Pattern.compile("\"" + name + "\":\\s*\"?([^\",}]*)").matcher(line);
    return m.find() ? m.group(1) : "";
  }
}
