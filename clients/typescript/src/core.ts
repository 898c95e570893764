/// <reference lib="esnext.disposable" preserve="true" />
import { type Clock, type Reading, since } from "./clock.js";
import { cancelled } from "./errors.js";
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

/** Writes a line for an operator. It is of a held lock, or of the base URL of a server. */
export type Log = (
  message: string,
  details: { lock?: string; fence?: number; url?: string; error: unknown },
) => void;

/** A call under way. */
export interface Call {
  /** Aborted by the caller's signal, or when the client closes. */
  signal: AbortSignal;
  end(): void;
}

/** What all calls of a client share. */
export class Core {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly retryFor: number;
  readonly log: Log;
  readonly #held = new Set<Held>();
  readonly #calls = new Set<AbortController>(); // that close ends at once
  readonly #leaves = new Set<AbortController>(); // and those that it lets give something back
  readonly #tasks = new Set<Promise<unknown>>(); // that close waits for
  #closed = false;
  #stopWatch: (() => void) | undefined;
  #last: Reading | undefined;

  constructor(transport: Transport, clock: Clock, retryFor: number, log: Log) {
    this.transport = transport;
    this.clock = clock;
    this.retryFor = retryFor;
    // A log that fails must not end the renewals of a lock.
    this.log = (message, details) => {
      try {
        log(message, details);
      } catch (error) {
        console.warn(`fencepost: the log failed: ${error}`);
      }
    };
  }

  /** Begins a call, which the signal or the end of the client cancels. */
  begin(outer: AbortSignal | undefined): Call {
    this.throwIfClosed();
    return begin(this.#calls, outer);
  }

  throwIfClosed(): void {
    if (this.#closed) {
      throw cancelled(closed());
    }
  }

  /** Runs a call. */
  async call<T>(
    outer: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#run(this.begin(outer), run);
  }

  /** Seconds left at an instant, of some from the first one on. */
  within(seconds: number): (now: Reading) => number {
    let begun: Reading | undefined;
    return (now) => {
      begun ??= now;
      return seconds - since(now, begun);
    };
  }

  /** Runs what gives something back. Close waits for it a while, and then ends it. */
  async leave(
    run: (signal: AbortSignal) => Promise<void>,
    outer?: AbortSignal | undefined,
  ): Promise<void> {
    return this.#run(begin(this.#leaves, outer), run);
  }

  #run<T>({ signal, end }: Call, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = run(signal);
    const ended = () => {
      end();
      this.#tasks.delete(running);
    };
    this.#tasks.add(running);
    running.then(ended, ended);
    return running;
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
    this.#closed = true;
    for (const held of this.#held) {
      held.close();
    }
    abort(this.#calls);
    const stop = new AbortController();
    const limit = sleep(this.clock, closeTimeout, stop.signal).catch(() => {});
    await Promise.race([this.#idle(), limit]);
    stop.abort();
    abort(this.#leaves);
  }

  /** Calls that end may begin to leave their queues. */
  async #idle(): Promise<void> {
    while (this.#tasks.size > 0) {
      await Promise.allSettled(this.#tasks);
    }
  }
}

/** Begins a call that is one of some. */
function begin(calls: Set<AbortController>, outer: AbortSignal | undefined): Call {
  if (outer?.aborted) {
    throw cancelled(outer.reason);
  }
  const call = new AbortController();
  const cancel = () => call.abort(outer?.reason);
  outer?.addEventListener("abort", cancel);
  calls.add(call);
  const end = () => {
    outer?.removeEventListener("abort", cancel);
    calls.delete(call);
  };
  return { signal: call.signal, end };
}

function abort(calls: Set<AbortController>): void {
  for (const call of calls) {
    call.abort(closed());
  }
}

function closed(): Error {
  return new Error("the client is closed");
}
