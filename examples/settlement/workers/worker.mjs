#!/usr/bin/env node
// Settles invoices under locks of Fencepost, with its TypeScript client. Node 20 or later.
//
// Environment: FENCEPOST_URL, FENCEPOST_TOKEN_FILE, LEDGER_URL, INVOICES (the CSV file),
// WORKER (its name), TTL_SECONDS, WORK_SECONDS (what one settlement takes) and, for the
// demo only, BEFORE_WRITE_URL (asked before each write; the write waits for the answer).

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Deadlock, Fencepost, LockHeld, LockLost, WaitTimeout } from '@fencepost/client';

const { FENCEPOST_URL, LEDGER_URL, BEFORE_WRITE_URL, WORKER = 'javascript' } = process.env;
const work = Number(process.env.WORK_SECONDS ?? 0) * 1000;
const options = { ttl: Number(process.env.TTL_SECONDS ?? 30), holder: WORKER };
// A file keeps the bearer token out of the process list.
const bearer = (await readFile(process.env.FENCEPOST_TOKEN_FILE, 'utf8')).trim();
const fencepost = new Fencepost(FENCEPOST_URL, bearer);

const log = (text) => console.error(`${WORKER}: ${text}`);
const lines = (text) => text.split('\n').filter(Boolean);

/** The ledger knows a newer holder. */
class Stale extends Error {}

/** Sends a request until it is answered, or signal is aborted. The ledger takes a repeated write once. */
async function send(method, path, { headers, body, signal } = {}) {
  for (;;) {
    signal?.throwIfAborted();
    const signals = [AbortSignal.timeout(5000), ...(signal ? [signal] : [])];
    try {
      const response = await fetch(`${LEDGER_URL}/batches/${path}`, {
        method, body, headers: { Worker: WORKER, ...headers }, signal: AbortSignal.any(signals),
      });
      const text = await response.text();
      if (response.status < 500) return { status: response.status, text };
    } catch {
      // No answer: the outcome is unknown.
    }
    await sleep(200 + Math.random() * 600);
  }
}

/** Sends a write with the fence, unless the lock is lost. */
async function write(held, path, body) {
  held.check();
  if (body && BEFORE_WRITE_URL) {
    const about = `${WORKER} ${held.name} ${held.fence} ${body.invoice}`;
    await fetch(BEFORE_WRITE_URL, { method: 'POST', body: about });
  }
  // However close the check above is to this line, the process can stop in between.
  const { status, text } = await send('POST', `${held.name}/${path}`, {
    headers: { Fence: String(held.fence), 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
    signal: held.signal,
  });
  if (status === 409) throw new Stale(`refused: 409 ${text.trim()}`);
  if (status >= 300) throw new Error(`${path} ${held.name}: ${status} ${text}`);
  return lines(text);
}

/** Pays what is still open. Opening comes first: it shuts out every older holder. */
async function settle(held, batch) {
  const settled = new Set(await write(held, 'open'));
  log(`${held.name} fence ${held.fence}: holds it, ${settled.size} of ${batch.size} settled before`);
  for (const [invoice, amount_cents] of batch) {
    if (settled.has(invoice)) continue;
    await sleep(work, undefined, { signal: held.signal });
    await write(held, 'settlements', { invoice, amount_cents });
  }
}

/** A look without the lock saves taking it; only a look under the lock may be acted on. */
async function finished(lock, batch) {
  const { status, text } = await send('GET', lock);
  return status === 200 && lines(text).length === batch.size;
}

/** The lock that acquire gives, or undefined while others keep it. */
async function unless(errors, acquire) {
  try {
    return await acquire;
  } catch (error) {
    if (!errors.some((type) => error instanceof type)) throw error;
  }
}

/** The first lock that is free, else a place in the queue of the first unfinished one. */
async function takeOne(batches) {
  for (const [lock, batch] of batches) {
    if (await finished(lock, batch)) {
      batches.delete(lock);
      continue;
    }
    const held = await unless([LockHeld], fencepost.tryLock(lock, options));
    if (held) return held;
  }
  const [first] = batches.keys();
  return first && unless([WaitTimeout, Deadlock], fencepost.lock(first, { ...options, wait: 20 }));
}

async function readBatches(file) {
  const batches = new Map();
  const [, ...rows] = lines(await readFile(file, 'utf8'));
  for (const row of rows) {
    const [batch, invoice, cents] = row.split(',');
    if (!batches.has(batch)) batches.set(batch, new Map());
    batches.get(batch).set(invoice, Number(cents));
  }
  return batches;
}

let held;
process.once('SIGTERM', async () => {
  await held?.release();
  process.exit(143);
});

const batches = await readBatches(process.env.INVOICES);
while (batches.size > 0) {
  held = await takeOne(batches);
  if (!held) continue;
  try {
    await settle(held, batches.get(held.name));
    batches.delete(held.name);
  } catch (error) {
    const why = held.lost ?? error;
    if (!(why instanceof LockLost || why instanceof Stale)) throw error;
    log(`${held.name} fence ${held.fence}: stops, ${why.message}`);
  } finally {
    await held.release().catch(() => {}); // logged
  }
}
