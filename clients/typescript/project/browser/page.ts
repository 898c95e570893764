// The declarations need neither Node's types nor a newer library than this.
import { Fencepost, LockHeld } from "@fencepost/client";

const fencepost = new Fencepost(location.origin, async () => "token");
document.addEventListener("click", async () => {
  try {
    const button = new AbortController();
    await fencepost.withLock("page", { signal: button.signal, ttl: 10 }, async (held) => {
      await fetch(`/save?fence=${held.fence}`, { signal: held.signal });
    });
  } catch (error) {
    document.title = error instanceof LockHeld ? `${error.problem.holders?.[0]?.holder}` : "";
  }
});
