// The TypeScript worker of the contest, see test/contest/README.md.
import { setTimeout as sleep } from "node:timers/promises";
import { Fencepost, type Held, LockLost } from "@fencepost/client";

interface Round {
  lock: string;
  fence: number;
  outcome: "written" | "stale" | "lost" | "failed";
  left?: number;
  detail?: string;
}

class Stale extends Error {}

const {
  FENCEPOST_URL = "",
  FENCEPOST_TOKEN = "",
  RESOURCE = "",
  LOCKS = "",
  TTL = "",
} = process.env;
const ttl = Number(TTL);
const locks = LOCKS.split(",");
const fencepost = new Fencepost(FENCEPOST_URL.split(","), FENCEPOST_TOKEN, { log: () => {} });
const ends = new AbortController();

/** Adds one to what the resource has, under the lock. */
async function round(lock: string): Promise<Round> {
  const result: Round = { lock, fence: 0, outcome: "written" };
  try {
    await fencepost.withLock(lock, { ttl, wait: 20, signal: ends.signal }, async (held) => {
      result.fence = held.fence;
      held.signal.addEventListener("abort", () => {
        result.left = left(held);
      });
      await work(held);
    });
    delete result.left; // of the release
  } catch (error) {
    result.detail = String(error);
    result.outcome = error instanceof Stale ? "stale" : "failed";
    if (error instanceof LockLost) {
      result.outcome = "lost";
    } else {
      delete result.left;
    }
  }
  return result;
}

/** Seconds to the end of the lease, as the client reckons. */
function left(held: Held): number {
  return held.left + held.margin;
}

async function work(held: Held): Promise<void> {
  const { signal } = held;
  const resource = `${RESOURCE}/${held.name}?fence=${held.fence}`;
  const before = await fetch(resource, { signal });
  const value = Number(await before.text());
  if (!before.ok || !Number.isInteger(value)) {
    throw new Error(`the resource answers ${before.status}`);
  }
  await sleep(Math.random() * ttl * 500, undefined, { signal });
  held.check();
  const answer = await fetch(`${resource}&left=${left(held).toFixed(3)}`, {
    method: "PUT",
    body: String(value + 1),
    signal,
  });
  const text = await answer.text();
  if (answer.status === 409) {
    throw new Stale("the resource knows a greater fence");
  }
  if (answer.status !== 204) {
    throw new Error(`the resource answers ${answer.status}: ${text}`);
  }
}

process.stdin.on("close", () => ends.abort()).resume();
while (!ends.signal.aborted) {
  const lock = locks[Math.floor(Math.random() * locks.length)] as string;
  const result = await round(lock);
  if (!ends.signal.aborted) {
    console.log(JSON.stringify(result));
  }
}
await fencepost.close();
