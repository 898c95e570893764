// Prints what the client costs: figures (see figures, which starts it).
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Fencepost, type Held } from "@fencepost/client";

const [url = ""] = (process.env.FENCEPOST_URL ?? "").split(",");
const token = process.env.FENCEPOST_TOKEN ?? "";
const fencepost = new Fencepost(url, token);
const held = 1000;

/** Milliseconds of processor time of this process. */
function cpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Resident memory, when the collector has given back what it can. */
async function resident(): Promise<number> {
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await sleep(1000);
  }
  return process.memoryUsage.rss();
}

async function byClient(name: string): Promise<void> {
  const lock = await fencepost.tryLock(name);
  await lock.release();
}

/** The same requests with the HTTP library alone. */
async function byFetch(name: string): Promise<void> {
  const authorization = { Authorization: `Bearer ${token}` };
  const path = `${url}/locks/${name}`;
  const granted = await fetch(path, {
    method: "POST",
    headers: {
      ...authorization,
      "Idempotency-Key": randomUUID(),
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ ttl_seconds: 30 }),
  });
  const entry = JSON.parse(await granted.text());
  const headers = { ...authorization, "Lock-Token": entry.token };
  const released = await fetch(path, { method: "DELETE", headers });
  if ((await released.text()) !== "") {
    throw new Error(`the release has the status ${released.status}`);
  }
}

async function costs(run: (name: string) => Promise<void>, times: number): Promise<number> {
  const before = cpu();
  for (let i = 0; i < times; i++) {
    await run("figures:ratio");
  }
  return cpu() - before;
}

async function ratio(): Promise<number> {
  await costs(byClient, 500);
  await costs(byFetch, 500);
  let [client, bare] = [0, 0];
  for (let round = 0; round < 20; round++) {
    client += await costs(byClient, 100);
    bare += await costs(byFetch, 100);
  }
  return client / bare;
}

async function holding(): Promise<[percent: number, bytes: number]> {
  const before = await resident();
  const locks: Held[] = [];
  for (let i = 0; i < held; i++) {
    locks.push(await fencepost.tryLock(`figures:${i}`));
  }
  await sleep(10_000); // until the first renewals are over
  const bytes = ((await resident()) - before) / held;
  const began = { cpu: cpu(), time: performance.now() };
  await sleep(60_000);
  const percent = ((cpu() - began.cpu) / (performance.now() - began.time)) * 100;
  for (const lock of locks) {
    lock.check();
    await lock.release();
  }
  return [percent, bytes];
}

await costs(byClient, 2000); // what the HTTP library keeps is not of the locks
const [percent, bytes] = await holding();
const acquire = await ratio();
console.log(`held-cpu-percent ${percent.toFixed(2)}`);
console.log(`held-bytes ${bytes.toFixed(0)}`);
console.log(`acquire-ratio ${acquire.toFixed(2)}`);
