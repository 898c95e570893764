/// <reference lib="esnext.disposable" preserve="true" />
import { type Clock, type Reading, since } from "./clock.js";
import type { Held } from "./held.js";
import { sleep } from "./repeat.js";
import type { Transport } from "./transport.js";

// A timer stands still while the machine is suspended, so the client looks at the other clocks once
// a second. Where they passed more time, the deadlines of its locks are nearer.
const watchEvery = 1; // seconds
const watchSlack = 0.05;

const closeTimeout = 2; // seconds in which calls that were cancelled leave their queues

/** Browsers may have no such symbol; then `await using` does not work either. */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Writes a line for an operator: a lost lock, or a failed release. */
export type Log = (
  message: string,
  details: { lock: string; fence: number; error: unknown },
) => void;

/** What all calls of a client share. */
export class Core {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly retryFor: number;
  readonly log: Log;
  closed = false;

  readonly #held = new Set<Held>();
  readonly #tasks = new Set<Promise<unknown>>();
  readonly #leaving = new AbortController();
  #stopWatch: (() => void) | undefined;
  #last: Reading | undefined;

  constructor(transport: Transport, clock: Clock, retryFor: number, log: Log) {
    this.transport = transport;
    this.clock = clock;
    this.retryFor = retryFor;
    this.log = log;
  }

  /** Seconds left at an instant, of some from the first one on. */
  within(seconds: number): (now: Reading) => number {
    let begun: Reading | undefined;
    return (now) => {
      begun ??= now;
      return seconds - since(now, begun);
    };
  }

  /** Runs what takes back the entry of a failed call. Close waits for it a while. */
  background(task: (signal: AbortSignal) => Promise<unknown>): void {
    if (this.closed) {
      return;
    }
    // What cannot be taken back expires, one TTL after the last request that waited.
    const running = task(this.#leaving.signal).catch(() => {});
    this.#tasks.add(running);
    void running.then(() => this.#tasks.delete(running));
  }

  /** Watches the clocks for a held lock. */
  keep(held: Held, now: Reading): void {
    this.#held.add(held);
    if (!this.#stopWatch) {
      this.#last = now;
      this.#stopWatch = this.clock.timer(watchEvery, this.#watch);
    }
  }

  drop(held: Held): void {
    this.#held.delete(held);
    if (this.#held.size === 0) {
      this.#stopWatch?.();
      this.#stopWatch = undefined;
    }
  }

  #watch = (): void => {
    const now = this.clock.read();
    const last = this.#last as Reading;
    const slept = since(now, last) - (now.monotonic - last.monotonic);
    this.#last = now;
    this.#stopWatch = this.clock.timer(watchEvery, this.#watch);
    if (slept > watchSlack) {
      for (const held of this.#held) {
        held.look(now);
      }
    }
  };

  async close(): Promise<void> {
    this.closed = true;
    for (const held of this.#held) {
      held.close();
    }
    const stop = new AbortController();
    const limit = sleep(this.clock, closeTimeout, stop.signal).catch(() => {});
    await Promise.race([Promise.all(this.#tasks), limit]);
    stop.abort();
    this.#leaving.abort();
  }
}
