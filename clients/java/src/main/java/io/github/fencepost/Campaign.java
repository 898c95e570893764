package io.github.fencepost;

import java.util.concurrent.CompletableFuture;

/** Leads for as long as its thread wants to. */
final class Campaign {
  private final Fencepost client;
  private final String name;
  private final LockOptions options;

  Campaign(Fencepost client, String name, LockOptions options) {
    this.client = client;
    this.name = name;
    this.options = options;
  }

  <E extends Exception> void run(Fencepost.Work<E> work) throws E {
    for (int pauses = 0;; pauses++) {
      Held held = acquire();
      if (held != null) {
        pauses = 0;
        if (lead(held, work)) {
          return;
        }
      }
      pause(Limit.jittered(pauses));
    }
  }

  /** Returns null if a later acquire may succeed. */
  private Held acquire() {
    try {
      return client.lock(name, options);
    } catch (FencepostException e) {
      int status = e.status();
      boolean passes =
          e instanceof LockLostException || e instanceof FencepostException.NoAnswer
              || status == 423 || status == 429 || status >= 500;
      if (!passes) {
        throw e;
      }
      return null;
    }
  }

  /** Runs the work of one term. It reports false if the lock was lost. */
  private static <E extends Exception> boolean lead(Held held, Fencepost.Work<E> work) throws E {
    try {
      work.run(held.interruptOnLost());
    } catch (Exception e) {
      if (resign(held)) {
        throw e;
      }
      return false;
    } catch (Error e) {
      resign(held);
      throw e;
    }
    return resign(held);
  }

  private static boolean resign(Held held) {
    try {
      held.close();
      return true;
    } catch (LockLostException e) {
      return false;
    }
  }

  private void pause(long nanos) {
    client.call(scope -> {
      CompletableFuture<Void> over = new CompletableFuture<>();
      Runnable timer = client.clock.after(nanos, () -> over.complete(null));
      scope.step(() -> {
        timer.run();
        over.completeExceptionally(FencepostException.cancelled("the call was cancelled"));
      });
      return over;
    });
  }
}
