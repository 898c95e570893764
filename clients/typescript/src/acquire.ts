import { type Reading, since, webCrypto } from "./clock.js";
import type { Core } from "./core.js";
import { cancelled, errorOf, FencepostError, lostOf, noAnswer } from "./errors.js";
import { Held, releaseOf, renewalOf } from "./held.js";
import type { Acquire, Target } from "./options.js";
import { Again, type Attempt, type Scope } from "./repeat.js";
import { type Answer, type Request, requestTimeout } from "./transport.js";
import { type Entry, entryOf, parse } from "./wire.js";

const longestHold = 50; // seconds for which a server keeps a request open that waits

/**
 * One acquire from its first request to its grant, over lost answers, replicas that drain and
 * requests that end before the wait does.
 */
export class Acquisition {
  entry: Entry | undefined; // once it is known, with its token
  readonly #core: Core;
  readonly #of: Target;
  readonly #options: Acquire;
  readonly #async: boolean; // the servers keep the entry while its client does not ask for it
  #begun: Reading | undefined; // when the call began
  #first: Reading | undefined; // when the key was sent first
  #key: string | undefined;
  #unknown = false; // a request may have written an entry whose token is not known
  #leaves = false; // the call is over, and its entry is taken back

  constructor(core: Core, of: Target, options: Acquire, async = false) {
    this.#core = core;
    this.#of = of;
    this.#options = { ...options };
    this.#async = async;
  }

  /** Acquires, or else takes back what it may have left in the queue. */
  acquire(signal: AbortSignal | undefined): Promise<Held> {
    return this.#core.call(signal, async (signal) => {
      try {
        return await this.#run(signal);
      } catch (error) {
        this.#leaveLater();
        throw error;
      }
    });
  }

  /** Waits for the grant, and begins to renew it. */
  run(signal: AbortSignal | undefined): Promise<Held> {
    return this.#core.call(signal, (signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<Held> {
    const scope = { left: (now: Reading) => this.#waits(now) + this.#core.retryFor, signal };
    const [entry, sent] = await this.#core.transport.repeat(scope, (attempt) =>
      this.#attempt(attempt, scope),
    );
    if (signal.aborted) {
      throw cancelled(signal.reason);
    }
    this.#first = undefined; // a grant that is waited for again has to be renewed first
    const held = new Held(this.#core, this.#of, entry, this.#options, sent);
    held.throwIfEnded();
    return held;
  }

  /** Queues, and does not wait. */
  queue(signal: AbortSignal | undefined): Promise<void> {
    return this.#core.call(signal, async (signal) => {
      const scope = { left: this.#core.within(this.#core.retryFor), signal };
      try {
        await this.#core.transport.repeat(scope, (attempt) => this.#next(attempt, signal));
      } catch (error) {
        this.#leaveLater();
        throw error;
      }
    });
  }

  /** Releases the entry, waiting or granted. It tries for one TTL. */
  async leave(signal: AbortSignal): Promise<void> {
    const scope = { left: this.#core.within(this.#ttl()), signal };
    try {
      await this.#core.transport.repeat(scope, (attempt) => this.#leave(attempt, scope));
    } catch (error) {
      if (!(error instanceof FencepostError) || error.code !== "lock_lost") {
        throw error;
      }
    }
  }

  /**
   * Makes one request, and a second one where a grant may be old: that is renewed before it counts.
   * Returns the grant, and when the request was sent from which the lease counts.
   */
  async #attempt(attempt: Attempt, scope: Scope): Promise<[Entry, Reading]> {
    let entry = this.entry;
    if (entry?.state !== "held") {
      entry = await this.#next(attempt, scope.signal);
    }
    const now = this.#core.clock.read();
    if (this.#first && since(now, this.#first) <= entry.ttlSeconds / 3) {
      return [entry, this.#first];
    }
    const late = { ...attempt, left: scope.left(now) };
    return [await this.#send(late, renewalOf(this.#of, entry), scope.signal), now];
  }

  /** Makes one attempt to acquire, or to go on waiting. Throws unless the entry holds. */
  async #next(attempt: Attempt, signal?: AbortSignal): Promise<Entry> {
    this.#first ??= attempt.begun;
    this.#key ??= await newKey();
    const request = this.#request(attempt.begun);
    const entry = await this.#send(attempt, request, signal);
    const queued = this.#leaves || (this.#async && request.method === "POST");
    if (entry.state === "held" || queued) {
      return entry;
    }
    // One that is answered too soon would be sent in a loop.
    throw new Again(noAnswer(), { goes: this.#elapsed(attempt.begun) >= 1, stays: true });
  }

  /** The request that is due: an acquire until the token is known, then one that waits on. */
  #request(now: Reading): Request {
    const hold = Math.min(this.#waits(now), longestHold);
    if (this.entry) {
      const seconds = Math.ceil(Math.max(hold, 1));
      return {
        method: "GET",
        path: `${this.#of.entryPath(this.entry.id)}?wait_seconds=${seconds}`,
        token: this.entry.token,
        timeout: seconds + requestTimeout,
      };
    }
    return {
      method: "POST",
      path: this.#of.path,
      ...(this.#key && { key: this.#key }),
      ...(this.#leaves && { prefer: "wait=0" }), // the token is needed, not the grant
      body: this.#of.body(this.#options, this.#async),
      timeout: (this.#async || this.#leaves ? 0 : Math.max(hold, 0)) + requestTimeout,
    };
  }

  /** Sends a request about the entry, and takes from its answer what that says of the entry. */
  async #send(attempt: Attempt, request: Request, signal?: AbortSignal): Promise<Entry> {
    try {
      this.entry = await this.#core.transport.tryEntry(attempt, request, signal);
      this.#unknown = false;
      return this.entry;
    } catch (error) {
      if (error instanceof Again) {
        this.#learn(error);
      } else if (error instanceof FencepostError && [409, 410, 423].includes(error.status ?? 0)) {
        this.#unknown = false;
        if (!this.#async) {
          this.entry = undefined; // nothing is left in the queue
        } // of an async entry the servers are asked again
        this.#ended(error);
      }
      throw error;
    }
  }

  /**
   * Takes the entry from the answer of a replica that hands it over. Where there is none, the
   * request may have written one all the same.
   */
  #learn(error: Again): void {
    const handed = handedOver(error.answer);
    if (handed) {
      this.entry = { ...handed, state: "" }; // its grant has to be asked for
    }
    const { status, problem } = error.error;
    if (!this.entry && status !== 429 && problem.mayHaveTakenEffect !== false) {
      this.#unknown = true;
    }
  }

  /**
   * Decides what the end of the entry means for the call. If the entry expired because no request
   * reached a server in time, the call acquires again while it may still wait.
   */
  #ended(error: FencepostError): void {
    if (error.code !== "lock_lost") {
      return;
    }
    const lost = lostOf(this.#of.name, error);
    const { reason } = lost;
    if (["wait_timeout", "deadlock", "superseded", "mode_mismatch"].includes(reason)) {
      throw errorOf({ ...error.problem, code: reason, title: reason }, error);
    }
    const { wait } = this.#options;
    const now = this.#core.clock.read();
    const over = this.#async || this.#leaves || (wait > 0 && this.#waits(now) <= 0);
    if ((reason !== "expired" && reason !== "unknown") || over) {
      throw lost;
    }
    if (wait > 0) {
      this.#options.wait = Math.ceil(this.#waits(now));
      this.#begun = now;
    }
    this.#key = this.#first = undefined;
    throw new Again(lost, { stays: true });
  }

  /** Takes back what a failed call may have left in the queue, for at most one TTL. */
  #leaveLater(): void {
    if (this.entry || this.#unknown) {
      this.#leaves = true;
      // What cannot be taken back expires, one TTL after the last request that waited.
      this.#core.leave((signal) => this.leave(signal)).catch(() => {});
    }
  }

  /**
   * Makes one attempt to release the entry. If its token is not known, the acquire is repeated
   * first: the same key is the same entry.
   */
  async #leave(attempt: Attempt, scope: Scope): Promise<void> {
    const entry = this.entry ?? (await this.#next(attempt, scope.signal));
    const late = { ...attempt, left: scope.left(this.#core.clock.read()) };
    await this.#core.transport.try(late, releaseOf(this.#of, entry), scope.signal);
  }

  #elapsed(earlier: Reading): number {
    return since(this.#core.clock.read(), earlier);
  }

  /** Seconds left of the wait. */
  #waits(now: Reading): number {
    this.#begun ??= now;
    return this.#options.wait - since(now, this.#begun);
  }

  #ttl(): number {
    return this.entry?.ttlSeconds ?? this.#options.ttl;
  }
}

/** The entry in the answer of a replica that drains. */
function handedOver(answer: Answer | undefined): Entry | undefined {
  const body = parse(answer?.text ?? "") as { entry?: unknown; set?: unknown } | null | undefined;
  return entryOf(body?.entry) ?? entryOf(body?.set);
}

/** 144 random bits. */
async function newKey(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(18));
  return btoa(String.fromCharCode(...bytes));
}
