import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;

/** Clients of Curator's InterProcessMutex, each with a connection of its own. */
public class Locks {
  static final int NAMES = 64; // locks that a client takes in turn

  /** Arguments: servers, login, session timeout in ms, number of clients, "one" for one lock. */
  public static void main(String[] args) throws Exception {
    CuratorFramework[] clients = new CuratorFramework[Integer.parseInt(args[3])];
    for (int i = 0; i < clients.length; i++) {
      clients[i] = CuratorFrameworkFactory.builder().connectString(args[0])
          .authorization("digest", args[1].getBytes()).aclProvider(new OwnersOnly())
          .sessionTimeoutMs(Integer.parseInt(args[2])).retryPolicy(new RetryOneTime(1)).build();
      clients[i].start();
      clients[i].blockUntilConnected();
    }
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] round = line.split(" "); // its number, warm-up and duration in ms
      System.out.println(round(clients, args[4].equals("one"), "/curator/" + round[0],
          Long.parseLong(round[1]) * 1_000_000, Long.parseLong(round[2]) * 1_000_000));
    }
    System.exit(0);
  }

  /** Runs a closed load, and returns how long each acquire took, in µs, or the first failure. */
  static String round(CuratorFramework[] clients, boolean one, String path, long warmup, long lasts)
      throws Exception {
    ConcurrentLinkedQueue<String> took = new ConcurrentLinkedQueue<>();
    AtomicReference<String> failure = new AtomicReference<>();
    AtomicInteger holders = new AtomicInteger();
    long start = System.nanoTime();
    Thread[] threads = new Thread[clients.length];
    for (int i = 0; i < clients.length; i++) {
      int client = i;
      threads[i] = new Thread(() -> {
        try {
          for (int n = 0; System.nanoTime() - start < warmup + lasts; n++) {
            String name = one ? path : path + "-" + client + "-" + n % NAMES;
            InterProcessMutex lock = new InterProcessMutex(clients[client], name);
            long sent = System.nanoTime();
            lock.acquire();
            long granted = System.nanoTime();
            if (one && holders.incrementAndGet() != 1) {
              throw new IllegalStateException("two clients hold the lock");
            }
            if (one) {
              holders.decrementAndGet();
            }
            lock.release();
            long end = System.nanoTime() - start;
            if (end >= warmup && end < warmup + lasts) {
              took.add(Long.toString((granted - sent) / 1000));
            }
          }
        } catch (Exception e) {
          failure.compareAndSet(null, e.toString());
        }
      });
      threads[i].start();
    }
    for (Thread t : threads) {
      t.join();
    }
    return failure.get() != null ? "failed: " + failure.get() : String.join(" ", took);
  }

  /** Protects nodes as go-zookeeper's lock is made to. */
  static class OwnersOnly implements ACLProvider {
    public List<ACL> getDefaultAcl() {
      return ZooDefs.Ids.CREATOR_ALL_ACL;
    }

    public List<ACL> getAclForPath(String path) {
      return ZooDefs.Ids.CREATOR_ALL_ACL;
    }
  }
}
