#!/usr/bin/env node
// Settles invoices under Fencepost locks. Node 20 or later, no packages.
//
// Environment: FENCEPOST_URL, FENCEPOST_TOKEN_FILE, LEDGER_URL, INVOICES (the CSV file),
// WORKER (its name), TTL_SECONDS, WORK_SECONDS (what one settlement takes) and, for the
// demo only, BEFORE_WRITE_URL (asked before each write; the write waits for the answer).

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const { FENCEPOST_URL, LEDGER_URL, BEFORE_WRITE_URL, WORKER = 'javascript' } = process.env;
const TTL = Number(process.env.TTL_SECONDS ?? 30) * 1000; // in here everything is milliseconds
const WORK = Number(process.env.WORK_SECONDS ?? 0) * 1000;
// A file keeps the bearer token out of the process list.
const bearer = (await readFile(process.env.FENCEPOST_TOKEN_FILE, 'utf8')).trim();

const QUEUE = 20_000; // how long to queue for a lock once nothing else is free
const HELD_OPEN = 50_000; // how long the server holds one waiting request open at most
const PATIENCE = 30_000; // how long to go on trying while a service does not answer

const now = () => performance.now(); // monotonic: the wall clock may jump
const log = (text) => console.error(`${WORKER}: ${text}`);

/** The lock is no longer ours; whoever holds it now goes on with the batch. */
class Lost extends Error {}

/** Sends a request. Status 0 means no answer: the outcome is unknown. */
async function call(method, url, { headers = {}, body, timeout = 5000, signal } = {}) {
  const signals = [AbortSignal.timeout(Math.ceil(timeout)), ...(signal ? [signal] : [])];
  try {
    const response = await fetch(url, { method, headers, body, signal: AbortSignal.any(signals) });
    const retryAfter = Number(response.headers.get('Retry-After')) * 1000;
    return { status: response.status, text: await response.text(), retryAfter };
  } catch {
    return { status: 0, text: 'no answer', retryAfter: 0 };
  }
}

const worthRetrying = ({ status }) => status === 0 || status === 429 || status >= 500;

/** Waits as long as the server asked, else about half a second, not in step with others. */
const pause = ({ retryAfter }) => sleep(retryAfter || 200 + Math.random() * 600);

// --- the lock ---------------------------------------------------------------

function fencepost(method, path, { headers, body, timeout } = {}) {
  return call(method, FENCEPOST_URL + path, {
    headers: { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
    timeout,
  });
}

/** Takes the lock, queueing for at most wait milliseconds. Undefined when others keep it. */
async function acquire(lock, wait) {
  const body = { ttl_seconds: TTL / 1000, wait_seconds: wait / 1000, holder: WORKER };
  let key = randomUUID();
  let sent = now();
  while (now() < sent + wait + PATIENCE) {
    // The same key is the same place in the queue, so asking again is always safe:
    // after a lost answer, and after 202, which means that the wait goes on.
    const answer = await fencepost('POST', `/locks/${lock}`, {
      headers: { 'Idempotency-Key': key },
      body,
      timeout: Math.min(wait, HELD_OPEN) + 10_000,
    });
    if (answer.status === 201) return Lease.granted(lock, JSON.parse(answer.text), sent);
    if (answer.status === 423) return undefined;
    if (answer.status === 409 && JSON.parse(answer.text).code === 'deadlock') return undefined;
    if (answer.status === 410) {
      key = randomUUID(); // granted and expired while its answers were lost
      sent = now();
    } else if (worthRetrying(answer)) {
      await pause(answer);
    } else if (answer.status !== 202) {
      throw new Error(`acquire ${lock}: ${answer.status} ${answer.text}`);
    }
  }
  throw new Error(`acquire ${lock}: no answer`); // what may be queued lapses with its TTL
}

/** A held lock, renewed in the background until release. */
class Lease {
  #token;
  #deadline;
  #lost = new AbortController();
  #ending; // the timer that fires at the deadline
  #renewal; // the timer of the next renewal
  #renewing = Promise.resolve();
  #released = false;

  constructor(lock, { token, fence }, deadline) {
    this.lock = lock;
    this.fence = fence;
    this.#token = token;
    this.#deadline = deadline;
  }

  /** The lease of a 201, or undefined if it ran out before we could use it. */
  static async granted(lock, entry, sent) {
    const lease = new Lease(lock, entry, sent + TTL);
    // The grant came at some time between asking and hearing of it. After a wait only
    // a renewal, counted from its own sending, says how long the lease lasts.
    if (now() > sent + TTL / 3) await lease.#renew();
    if (!lease.held()) return lease.release();
    lease.#extend(lease.#deadline);
    lease.#schedule(TTL / 3);
    return lease;
  }

  /** False once the lease may have ended. True is a guess: only the fence is proof. */
  held() {
    return now() < this.#deadline;
  }

  /** Aborted when the lease ends, to cut short what is under way. */
  get signal() {
    return this.#lost.signal;
  }

  #extend(deadline) {
    this.#deadline = deadline;
    clearTimeout(this.#ending);
    this.#ending = setTimeout(() => this.#lost.abort(), Math.max(0, deadline - now()));
  }

  #schedule(delay) {
    this.#renewal = setTimeout(() => {
      this.#renewing = this.#renew().then((renewed) => {
        if (!this.#released && this.held()) this.#schedule(renewed ? TTL / 3 : TTL / 10);
      });
    }, delay);
  }

  async #renew() {
    const sent = now();
    const answer = await fencepost('PUT', `/locks/${this.lock}/renew`, {
      headers: { 'Lock-Token': this.#token },
      timeout: TTL / 3,
    });
    // A lease that has aborted its work stays lost, even if this answer is good news.
    if (answer.status === 200 && !this.signal.aborted) this.#extend(sent + TTL);
    if (answer.status === 403 || answer.status === 410) this.#extend(0);
    return answer.status === 200;
  }

  async release() {
    this.#released = true;
    clearTimeout(this.#renewal);
    await this.#renewing;
    this.#extend(0);
    clearTimeout(this.#ending);
    this.#lost.abort();
    for (let attempt = 0; attempt < 3; attempt++) {
      // 410 is fine: it is gone already. If all fail, the TTL frees it.
      const answer = await fencepost('DELETE', `/locks/${this.lock}`, { headers: { 'Lock-Token': this.#token } });
      if (!worthRetrying(answer)) return undefined;
      await pause(answer);
    }
    return undefined;
  }
}

// --- the work ---------------------------------------------------------------

/** Sends a write with the fence, again and again until its outcome is known. */
async function write(lease, path, body) {
  while (lease.held()) {
    if (body && BEFORE_WRITE_URL) {
      const about = `${WORKER} ${lease.lock} ${lease.fence} ${body.invoice}`;
      await call('POST', BEFORE_WRITE_URL, { body: about, timeout: 120_000 });
    }
    // However close the check above is to this line, the process can stop in between.
    const answer = await call('POST', `${LEDGER_URL}/batches/${lease.lock}/${path}`, {
      headers: { Fence: String(lease.fence), Worker: WORKER, 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
      signal: lease.signal,
    });
    if (answer.status === 200 || answer.status === 201) return answer.text.split('\n').filter(Boolean);
    if (answer.status === 409) throw new Lost(`refused: 409 ${answer.text.trim()}`);
    if (!worthRetrying(answer)) throw new Error(`${path} ${lease.lock}: ${answer.status} ${answer.text}`);
    if (lease.held()) await pause(answer);
  }
  throw new Lost('the lease has ended');
}

/** Pays what is still open. Opening comes first: it shuts out every older holder. */
async function settle(lease, batch) {
  const settled = new Set(await write(lease, 'open'));
  log(`${lease.lock} fence ${lease.fence}: holds it, ${settled.size} of ${batch.size} settled before`);
  for (const [invoice, amount_cents] of batch) {
    if (settled.has(invoice)) continue;
    await sleep(WORK);
    await write(lease, 'settlements', { invoice, amount_cents });
  }
}

/** A look without the lock saves taking it; only a look under the lock may be acted on. */
async function finished(lock, batch) {
  const answer = await call('GET', `${LEDGER_URL}/batches/${lock}`);
  return answer.status === 200 && answer.text.split('\n').filter(Boolean).length === batch.size;
}

/** The first lock that is free, else a place in the queue of the first unfinished one. */
async function takeOne(batches) {
  for (const [lock, batch] of batches) {
    if (await finished(lock, batch)) {
      batches.delete(lock);
      continue;
    }
    const lease = await acquire(lock, 0);
    if (lease) return lease;
  }
  const [first] = batches.keys();
  return first && acquire(first, QUEUE);
}

async function readBatches(file) {
  const batches = new Map();
  const [, ...rows] = (await readFile(file, 'utf8')).trim().split('\n');
  for (const row of rows) {
    const [batch, invoice, cents] = row.split(',');
    if (!batches.has(batch)) batches.set(batch, new Map());
    batches.get(batch).set(invoice, Number(cents));
  }
  return batches;
}

let lease;
process.once('SIGTERM', async () => {
  await lease?.release();
  process.exit(143);
});

const batches = await readBatches(process.env.INVOICES);
while (batches.size > 0) {
  lease = await takeOne(batches);
  if (!lease) continue;
  try {
    await settle(lease, batches.get(lease.lock));
    batches.delete(lease.lock);
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    log(`${lease.lock} fence ${lease.fence}: stops, ${error.message}`);
  } finally {
    await lease.release();
  }
}
