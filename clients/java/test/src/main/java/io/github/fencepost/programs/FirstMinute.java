package io.github.fencepost.programs;

import io.github.fencepost.Fencepost;
import io.github.fencepost.Held;
import io.github.fencepost.LockLostException;
import io.github.fencepost.LockOptions;
import java.time.Duration;

/** The program of the README. */
public final class FirstMinute {
  private FirstMinute() {}

  /**
   * Holds a lock for five seconds.
   *
   * @param arguments are not used
   * @throws InterruptedException if the thread is interrupted, but not by a loss
   */
  public static void main(String[] arguments) throws InterruptedException {
    LockOptions options = LockOptions.ttl(Duration.ofSeconds(3)).wait(Duration.ofSeconds(60));
    try (Fencepost fencepost =
            new Fencepost(System.getenv("FENCEPOST_URL"), System.getenv("FENCEPOST_TOKEN"));
        Held held = fencepost.lock("orders:42", options)) {
      for (int i = 0; i < 5; i++) {
        held.check(); // throws once the lock is lost
        System.out.println("held with fence " + held.fence() + " for " + held.left());
        Thread.sleep(1000); // your work, with the fence in each write
      }
    } catch (LockLostException e) {
      System.out.println("stop: " + e.getMessage());
    }
  }
}
