// The client against a real server, see ../check.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Cancelled,
  Fencepost,
  type FencepostEvent,
  LockHeld,
  Superseded,
  verifyWebhook,
} from "@fencepost/client";

const { FENCEPOST_URL: API = "", FENCEPOST_TOKEN: TOKEN = "" } = process.env;
const { TLS_URL = "", TLS_TOKEN = "" } = process.env;
const brief = 2; // seconds, the shortest lease
const callers = Number(process.env.CALLERS ?? 300);

function connect(): Fencepost {
  return new Fencepost(["http://127.0.0.1:1", API], TOKEN); // nothing listens at the first
}

/** Waits until something holds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const limit = AbortSignal.timeout(10_000);
  while (!(await holds())) {
    limit.throwIfAborted();
    await sleep(20);
  }
}

test("a held lock is renewed until it is released, and refused to others meanwhile", async () => {
  await using client = connect();
  const held = await client.tryLock("renewed", { ttl: brief, holder: "w1" });
  const busy = await client.tryLock("renewed").catch((error: unknown) => error);
  assert(busy instanceof LockHeld);
  assert.equal(busy.problem.holders?.[0]?.holder, "w1");
  const next = client.lock("renewed", { ttl: brief });
  const early = await Promise.race([next, sleep(2000 * brief)]);
  assert.equal(early, undefined);
  held.check();
  await held.release();
  assert(held.signal.aborted);
  const after = await next;
  assert(after.fence > held.fence);
  await after.release();
});

test("a set, shared locks and a semaphore", async () => {
  await using client = connect();
  const set = await client.lockSet([{ name: "set:b", mode: "shared" }, { name: "set:a" }]);
  assert.deepEqual(set.fences, { "set:a": set.fence, "set:b": set.fence });
  assert.equal(set.name, "set:a,set:b");
  const reader = await client.tryLock("set:b", { mode: "shared" });
  await assert.rejects(client.tryLockSet([{ name: "set:a" }]), LockHeld);
  await Promise.all([set.release(), reader.release()]);
  const seats = { mode: "semaphore", limit: 2 } as const;
  const first = await client.tryLock("seats", seats);
  const second = await client.tryLock("seats", seats);
  await assert.rejects(client.tryLock("seats", seats), LockHeld);
  await Promise.all([first.release(), second.release()]);
});

test("any of a pool is taken", async () => {
  await using client = connect();
  const pool = ["any:2", "any:0", "any:1"];
  const first = await client.lockAny(pool);
  assert.equal(first.name, "any:2");
  const others = await client.tryLockAny(pool, 2);
  await assert.rejects(client.tryLockAny(pool), LockHeld);
  const next = client.lockAny(pool);
  await until(async () => (await client.look("any:0")).waiting === 1);
  await others.release();
  const held = await next;
  assert.deepEqual(held.fences, { "any:0": held.fence });
  await Promise.all([first.release(), held.release()]);
});

test("many callers at once share a pool", async () => {
  await using client = connect();
  const pool = ["pool:0", "pool:1", "pool:2", "pool:3"];
  const fences = new Map<string, number[]>(pool.map((name) => [name, []]));
  const holders = new Set<string>();
  const call = async () => {
    const held = await client.lockAny(pool, 1, { wait: 120 });
    assert(!holders.has(held.name));
    holders.add(held.name);
    fences.get(held.name)?.push(held.fence);
    await sleep(5);
    holders.delete(held.name);
    await held.release();
  };
  await Promise.all(Array.from({ length: 60 }, call));
  const all = [...fences.values()];
  assert.equal(all.flat().length, 60);
  for (const of of all) {
    const sorted = [...of].sort((a, b) => a - b);
    assert(of.length > 0);
    assert.deepEqual(of, sorted);
  }
});

test("a semaphore has permits, and each entry a limit", async () => {
  await using client = connect();
  const seats = { mode: "semaphore", limit: 3 } as const;
  const two = await client.tryLock("permits", { ...seats, permits: 2 });
  await assert.rejects(client.tryLock("permits", { ...seats, permits: 2 }), LockHeld);
  const one = await client.tryLock("permits", seats);
  const another = await client.tryLock("permits", { ...seats, limit: 4 });
  await Promise.all([two, one, another].map((held) => held.release()));
});

test("only the newest waits", async () => {
  await using client = connect();
  const held = await client.tryLock("newest");
  const older = assert.rejects(client.lock("newest", { onlyNewest: true }), Superseded);
  await until(async () => (await client.look("newest")).waiting === 1);
  const newer = client.lock("newest", { onlyNewest: true });
  await older;
  await held.release();
  await (await newer).release();
});

test("a lock is kept for its least time", async () => {
  await using client = connect();
  const began = performance.now();
  const fence = await client.withLock("least", { atLeast: 2 }, (held) => held.fence);
  const later = await client.lock("least");
  assert(performance.now() - began >= 1990); // timers of Node count whole milliseconds
  assert(later.fence > fence);
  await later.release();
});

test("many callers at once on one lock hold it one after another", async () => {
  await using client = connect();
  let holders = 0;
  const fences: number[] = [];
  const call = () =>
    client.withLock("one", { wait: 120 }, async ({ fence }) => {
      fences.push(fence);
      assert.equal(++holders, 1);
      await sleep(0);
      holders--;
    });
  await Promise.all(Array.from({ length: callers }, call));
  assert.equal(fences.length, callers);
  assert.deepEqual(
    fences,
    [...fences].sort((a, b) => a - b),
  );
});

test("many callers at once on as many locks hold them all", async () => {
  await using client = connect();
  const names = Array.from({ length: callers }, (_, i) => `many:${i}`);
  const held = await Promise.all(names.map((name) => client.lock(name)));
  const listed: string[] = [];
  for await (const lock of client.list({ prefix: "many:" })) {
    listed.push(lock.name);
  }
  assert.deepEqual(listed, [...names].sort());
  await Promise.all(held.map((lock) => lock.release()));
});

for (const [scheme, url, token] of [
  ["http", API, TOKEN],
  ["https", TLS_URL, TLS_TOKEN],
] as const) {
  test(`waits over ${scheme} take nothing from the renewals of a holder`, async () => {
    await using client = new Fencepost(url, token);
    const name = `busy:${Date.now()}`; // a closed client leaves it to its TTL
    const held = await client.tryLock(name, { ttl: 12 });
    const waits: Promise<unknown>[] = [];
    while (waits.length < callers) {
      for (let i = 0; i < 20; i++) {
        // More at once would take all of the processor for TLS.
        waits.push(client.lock(name).catch((error: unknown) => error));
      }
      await until(async () => (await client.look(name)).waiting === waits.length);
    }
    const { left } = held;
    await until(async () => held.left > left); // it was renewed
    held.check();
    await client.close();
    for (const wait of await Promise.all(waits)) {
      assert(wait instanceof Cancelled);
    }
  });
}

test("a closed client leaves its queues, and another process adopts its lock", async () => {
  await using client = connect();
  const first = connect();
  const { token, fence } = await first.tryLock("adopted", { ttl: 30 });
  const waiting = async (count: number) => (await client.look("adopted")).waiting === count;
  const wait = assert.rejects(first.lock("adopted"), Cancelled);
  await until(() => waiting(1));
  await first.close();
  await wait;
  await until(() => waiting(0)); // before the lease of the entry ends
  const held = await client.adopt("adopted", `${token}\n`);
  assert.equal(held.fence, fence);
  await held.release();
  await assert.rejects(client.adopt("adopted", token), { reason: "released" });
});

test("a cancelled wait leaves the queue", async () => {
  await using client = connect();
  const waiting = async (count: number) => (await client.look("cancelled")).waiting === count;
  const held = await client.tryLock("cancelled");
  const controller = new AbortController();
  const wait = client.lock("cancelled", { signal: controller.signal });
  await until(() => waiting(1));
  controller.abort();
  await assert.rejects(wait, Cancelled);
  await held.release();
  const began = performance.now();
  await (await client.lock("cancelled")).release();
  assert(performance.now() - began < 10_000);
  await until(() => waiting(0));
});

test("the holder is asked to finish", async () => {
  await using client = connect();
  const { promise: asked, resolve } = withResolvers<string>();
  const held = await client.tryLock("asked", {
    ttl: brief,
    onReleaseRequested: ({ by }) => resolve(by),
  });
  const next = client.lock("asked", { holder: "w2", requestRelease: 1 });
  assert.equal(await asked, "w2");
  await held.release();
  await (await next).release();
});

test("events follow what happens", async () => {
  await using client = connect();
  const controller = new AbortController();
  const { signal } = controller;
  const events = client.events({ locks: ["events:*"], types: ["lock.released"], signal });
  const first = events.next();
  let released = false;
  const cycle = async () => {
    await (await client.lock("events:1")).release();
    await sleep(100);
    return released;
  };
  void first.then(() => {
    released = true;
  });
  await until(cycle); // the stream may begin after the first of them
  const { value } = await first;
  assert.equal(value?.type, "lock.released");
  assert.equal(value?.data.lock, "events:1");
  controller.abort();
  await assert.rejects(async () => {
    for await (const _ of events);
  }, Cancelled);
});

test("a callback is verified, and its grant claimed", async () => {
  await using client = connect();
  const secret = await rotate();
  const events: FencepostEvent[] = [];
  const { promise: granted, resolve } = withResolvers<FencepostEvent>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) {
      body += chunk;
    }
    const event = await verifyWebhook(request.headers, body, secret);
    events.push(event);
    resolve(event);
    response.end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const first = await client.tryLock("callback");
  const pending = await client.asyncAcquire("callback", {
    ttl: 15,
    wait: 3600,
    callbackUrl: `http://127.0.0.1:${port}/granted`,
  });
  await first.release();
  const event = await granted;
  assert.equal(event.data.entry?.id, pending.id);
  const held = await client.claim(event);
  assert(held.fence > first.fence);
  await held.release();
  await assert.rejects(client.claim(event), { code: "lock_lost", reason: "released" });
  server.close();
});

test("an async entry is waited for, or left", async () => {
  await using client = connect();
  const first = await client.tryLock("async");
  const [stays, leaves] = [await client.asyncAcquire("async"), await client.asyncAcquire("async")];
  await leaves.leave();
  await first.release();
  const held = await stays.wait();
  assert.equal((await client.look("async")).waiting, 0);
  await held.release();
});

test("one of two candidates leads at a time", async () => {
  await using client = connect();
  const terms: number[] = [];
  const candidate = () =>
    client.lead("leader", {}, async ({ fence }) => {
      terms.push(fence);
      await sleep(50);
      return fence;
    });
  const won = await Promise.all([candidate(), candidate()]);
  assert.deepEqual(
    terms,
    won.sort((a, b) => a - b),
  );
  assert.notEqual(terms[0], terms[1]);
});

test("a stale write is reported", async () => {
  await using client = connect();
  await client.staleWrite("stale", { fencePresented: 1, fenceKnown: 2, resource: "db/orders" });
});

/** Makes a callback secret for the tenant. */
async function rotate(): Promise<string> {
  const response = await fetch(`${API}/webhooks/callback-secret/rotate`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TOKEN}` },
  });
  return ((await response.json()) as { secret: string }).secret;
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((give) => {
    resolve = give;
  });
  return { promise, resolve };
}
