import { Acquisition } from "./acquire.js";
import { type Clock, systemClock } from "./clock.js";
import { asyncDispose, Core, type Log } from "./core.js";
import { FencepostError, invalid, LockLost, noAnswer } from "./errors.js";
import { type EventFilter, EventStream, withQuery } from "./events.js";
import { adopt, type Held } from "./held.js";
import {
  type AsyncOptions,
  calling,
  check,
  type HoldOptions,
  holding,
  type LockOptions,
  locking,
  lockingSet,
  lockPath,
  queueing,
  type SetOptions,
  Target,
  type TryOptions,
  type TrySetOptions,
  trying,
  tryingSet,
  withDefaults,
} from "./options.js";
import { Pending } from "./pending.js";
import { pause, sleep } from "./repeat.js";
import { bearerOf, type Request, send, Transport } from "./transport.js";
import { type Claim, type FencepostEvent, type Lock, type LockSummary, parse } from "./wire.js";

/** How a client works. Times are in seconds. */
export interface ClientOptions {
  /**
   * How long a call repeats a request that the servers do not answer, or answer with 503 or 429,
   * beyond the time that it waits for a lock. 30 by default. The limit of a held lock is its
   * deadline instead.
   */
  retryFor?: number | undefined;
  /** Adds headers to a request, such as the `traceparent` of the caller. */
  propagate?: ((headers: Record<string, string>) => void) | undefined;
  /**
   * Gets a line for each lost lock, each failed release, and the first of a row of requests that no
   * server answers; `console.warn` by default.
   */
  log?: Log | undefined;
  /** Sends requests; the global one by default. */
  fetch?: typeof fetch | undefined;
  /** For tests of programs. */
  clock?: Clock | undefined;
}

const warn: Log = (message, { lock, fence, url, error }) =>
  console.warn(`fencepost: ${message}: ${url ?? `${lock}, fence ${fence}`}: ${error}`);

const listing = [...calling, "prefix", "state"];
const following = [...calling, "types", "locks", "after"];
const settings = ["retryFor", "propagate", "log", "fetch", "clock"];

/** What runs while a lock is held. */
export type Work<T> = (held: Held) => T | Promise<T>;

let system: Clock | undefined; // one for all clients

/** Acquires locks. It uses one of the base URLs until that fails, then the next. */
export class Fencepost {
  readonly #core: Core;

  /**
   * Base URLs are in a list, or in one text with commas in between. The token is the bearer token,
   * or a function that is called for each request; its error is a request without an answer: the
   * client tries again. Blanks around both are dropped. Undefined is what `process.env` has of a
   * variable that is not set: it throws an {@link InvalidRequest}, as all that can never work.
   */
  constructor(
    urls: string | readonly string[] | undefined,
    token: string | (() => string | Promise<string>) | undefined,
    options: ClientOptions = {},
  ) {
    check(options, settings);
    const bases = basesOf(urls);
    if (token === undefined) {
      throw invalid("there is no bearer token: is FENCEPOST_TOKEN set?");
    }
    system ??= systemClock();
    const clock = options.clock ?? system;
    const transport = new Transport({
      urls: bases,
      token: typeof token === "function" ? token : bearerOf(token),
      clock,
      fetch: options.fetch ?? send,
      propagate: options.propagate,
      warn: (url, error) => this.#core.log("no answer, trying again", { url, error }),
    });
    this.#core = new Core(transport, clock, options.retryFor ?? 30, options.log ?? warn);
  }

  /**
   * Acquires a lock and waits for it up to `options.wait`. Fails with {@link WaitTimeout},
   * {@link LockClosed}, {@link Deadlock}, {@link Superseded}, {@link NoAnswer} after the wait and `retryFor`, a
   * {@link LockLost} if an operator revoked the entry, or a {@link FencepostError} of another code.
   *
   * If `options.signal` is aborted while it waits, it fails with {@link Cancelled}, and leaves the
   * queue in the background. Once the lock is held, that signal has no effect.
   */
  lock(name: string, options: LockOptions = {}): Promise<Held> {
    return this.#acquire(name, options, locking);
  }

  /** Acquires a lock if it is free now, or fails with {@link LockHeld}. */
  tryLock(name: string, options: TryOptions = {}): Promise<Held> {
    return this.#acquire(name, options, trying, 0);
  }

  /** Acquires all locks at once, or none. The order of claims does not matter. */
  lockSet(claims: readonly (string | Claim)[], options: SetOptions = {}): Promise<Held> {
    return this.#acquire(claims, options, lockingSet);
  }

  /** Acquires all locks if they are free now, or fails with {@link LockHeld}. */
  tryLockSet(claims: readonly (string | Claim)[], options: TrySetOptions = {}): Promise<Held> {
    return this.#acquire(claims, options, tryingSet, 0);
  }

  /**
   * Acquires any k of the locks: those that are free first, and of these the first in the list. It
   * waits in all their queues. {@link Held.fences} has those that were granted.
   */
  lockAny(claims: readonly (string | Claim)[], k = 1, options: SetOptions = {}): Promise<Held> {
    return this.#acquire(claims, options, lockingSet, undefined, k);
  }

  /** Acquires any k of the locks if they are free now, or fails with {@link LockHeld}. */
  tryLockAny(
    claims: readonly (string | Claim)[],
    k = 1,
    options: TrySetOptions = {},
  ): Promise<Held> {
    return this.#acquire(claims, options, tryingSet, 0, k);
  }

  /**
   * Runs work while it holds a lock, or a set of locks, and releases it. `held.signal` is aborted
   * when the lock is lost, and with `options.signal`. Throws what the work throws; the
   * {@link LockLost} instead of an AbortError, or if the work did not notice. A failed release is
   * only logged.
   */
  withLock<T>(name: string | readonly (string | Claim)[], work: Work<T>): Promise<T>;
  withLock<T>(
    name: string | readonly (string | Claim)[],
    options: LockOptions,
    work: Work<T>,
  ): Promise<T>;
  async withLock<T>(
    name: string | readonly (string | Claim)[],
    ...rest: [Work<T>] | [LockOptions, Work<T>]
  ): Promise<T> {
    const [options, work] = withWork(rest);
    const held = await this.#acquire(name, options, Array.isArray(name) ? lockingSet : locking);
    held.follow(options.signal);
    try {
      const result = await work(held);
      held.throwIfLost();
      return result;
    } catch (error) {
      if (isAbort(error)) {
        held.throwIfLost();
      }
      throw error;
    } finally {
      await held.release().catch(() => {}); // logged
    }
  }

  /**
   * Queues for a lock and returns at once; the servers keep the entry for as long as its wait. The
   * grant has to be claimed within a TTL, by {@link Pending.wait} or, where a callback reports it,
   * by {@link claim}. The TTL has to be at least 15 s.
   */
  async asyncAcquire(name: string, options: AsyncOptions = {}): Promise<Pending> {
    check(options, queueing);
    const of = new Target(name);
    const acquisition = new Acquisition(this.#core, of, withDefaults(options), true);
    await acquisition.queue(options.signal);
    return new Pending(this.#core, acquisition);
  }

  /**
   * Takes the grant that a callback reported, see {@link verifyWebhook}, and renews the lock from
   * then on. Fails with a {@link LockLost} if the lock has passed on, or the event is no grant.
   *
   * A callback may come twice. Pass over an event whose id you have seen: two claims of one grant
   * would both count as its holder.
   */
  async claim(
    event: FencepostEvent,
    options: HoldOptions & { signal?: AbortSignal | undefined } = {},
  ): Promise<Held> {
    check(options, holding);
    const { lock, locks = [], entry } = event.data ?? {};
    const of = new Target(lock ?? locks.map((name) => ({ name })));
    if (event.type !== "lock.acquired" || !entry?.token) {
      throw new LockLost(of.name, "not_granted");
    }
    const { id, token, ttlSeconds } = entry;
    if (!(ttlSeconds > 0)) {
      throw invalid("the event is not as verifyWebhook returns it");
    }
    // It can be claimed for as long as the lease.
    const acquire = { ...withDefaults({ ...options, ttl: ttlSeconds }), wait: ttlSeconds };
    const acquisition = new Acquisition(this.#core, of, acquire, true);
    acquisition.entry = { id, token, ttlSeconds, state: "held" };
    return acquisition.run(options.signal);
  }

  /**
   * Takes over a lock from another process, which gives its {@link Held.token} away, and closes its
   * client without a release. It renews the lock first, and from then on. Fails with a
   * {@link LockLost} if the lock has passed on, or the entry still waits. Sets cannot be adopted.
   */
  async adopt(
    name: string,
    token: string,
    options: HoldOptions & { signal?: AbortSignal | undefined } = {},
  ): Promise<Held> {
    check(options, holding);
    lockPath(name);
    const trimmed = typeof token === "string" ? token.trim() : ""; // a file ends in a line break
    if (!/^[!-~]+$/.test(trimmed)) {
      throw invalid("the token of the lock is not valid");
    }
    return this.#core.call(options.signal, (signal) =>
      adopt(this.#core, new Target(name), trimmed, options, signal),
    );
  }

  /**
   * Campaigns for a lock and runs work while this process is the leader. `held.fence` is the term:
   * it grows from each leader to the next, and the work can call `held.check()`. When the lock is lost, `held.signal` is aborted; the work
   * has to return then, and the campaign goes on. If it returns or throws while the lock is held,
   * the process resigns, and lead returns or throws the same.
   *
   * The campaign goes on while no server answers, until `options.signal` is aborted, which also
   * aborts `held.signal`. Refusals such as `forbidden` end it.
   */
  lead<T>(name: string, work: Work<T>): Promise<T>;
  lead<T>(name: string, options: LockOptions, work: Work<T>): Promise<T>;
  async lead<T>(name: string, ...rest: [Work<T>] | [LockOptions, Work<T>]): Promise<T> {
    const [options, work] = withWork(rest);
    for (let pauses = 0; ; pauses++) {
      let term: Held | undefined;
      try {
        return await this.withLock(name, options, (held) => {
          term = held;
          pauses = 0;
          return work(held);
        });
      } catch (error) {
        if (term ? !term.lost : !passes(error)) {
          throw error;
        }
      }
      await this.#core.call(options.signal, (signal) =>
        sleep(this.#core.clock, pause(pauses), signal),
      );
    }
  }

  /** A lock with its holders and waiters. A free lock has none. */
  async look(name: string, options: { signal?: AbortSignal } = {}): Promise<Lock> {
    check(options, calling);
    return this.#get(() => lockPath(name), options.signal);
  }

  /** The locks in use whose names begin with a prefix, in byte order, over all pages. */
  async *list(
    options: { prefix?: string; state?: "held" | "contended"; signal?: AbortSignal } = {},
  ): AsyncGenerator<LockSummary, void, undefined> {
    check(options, listing);
    const { signal, ...query } = options;
    let cursor: string | undefined;
    do {
      const path = withQuery("/locks", { ...query, cursor });
      const page = await this.#get<{ locks: LockSummary[]; nextCursor?: string }>(
        () => path,
        signal,
      );
      yield* page.locks;
      cursor = page.nextCursor;
    } while (cursor);
  }

  /**
   * What happens to the tenant's locks, to be read by `for await`. A stream that is cut resumes
   * where it was, at another URL if there is one, for as long as it takes. An event of the type
   * `events.missed` says that some are unknown: read {@link list} then.
   */
  async *events(filter: EventFilter = {}): AsyncGenerator<FencepostEvent, void, undefined> {
    check(filter, following);
    const { signal, end } = this.#core.begin(filter.signal);
    try {
      yield* new EventStream(this.#core.transport, filter, signal).read();
    } finally {
      end();
    }
  }

  /**
   * For a resource that rejected a write: reports the fence that came with it, the greatest that the
   * resource knows, and its own name, to the operators.
   */
  async staleWrite(
    name: string,
    write: { fencePresented: number; fenceKnown: number; resource: string },
  ): Promise<void> {
    await this.#ask(() => ({
      method: "POST",
      path: `${lockPath(name)}/stale-writes`,
      body: {
        fence_presented: write.fencePresented,
        fence_known: write.fenceKnown,
        resource: write.resource,
      },
    }));
  }

  /**
   * Stops the renewal of all locks that the client still holds, and aborts their signals. It does
   * not release them: they expire with their TTL. Calls under way fail with {@link Cancelled}, and
   * so do later ones. It waits up to 2 s until those have left their queues, and for releases.
   */
  close(): Promise<void> {
    return this.#core.close();
  }

  /** Closes the client at the end of `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  async #acquire(
    name: string | readonly (string | Claim)[],
    options: LockOptions,
    known: readonly string[],
    wait?: number,
    k?: number,
  ): Promise<Held> {
    check(options, known);
    const of = new Target(name, k);
    const acquisition = new Acquisition(this.#core, of, withDefaults(options, wait));
    return acquisition.acquire(options.signal);
  }

  /** Sends a request until a server answers it for good. */
  async #ask(request: () => Request, signal?: AbortSignal): Promise<string> {
    return this.#core.call(signal, async (signal) => {
      const scope = { left: this.#core.within(this.#core.retryFor), signal };
      const answer = await this.#core.transport.repeat(scope, (attempt) =>
        this.#core.transport.try(attempt, request(), signal),
      );
      return answer.text;
    });
  }

  async #get<T>(path: () => string, signal: AbortSignal | undefined): Promise<T> {
    const text = await this.#ask(() => ({ method: "GET", path: path() }), signal);
    const value = parse(text);
    if (typeof value !== "object" || value === null) {
      throw noAnswer(new Error("what answered is no server"));
    }
    return value as T;
  }
}

/** Whether work reports that its signal was aborted, and not why. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** Whether a later acquire may succeed. */
function passes(error: unknown): boolean {
  if (!(error instanceof FencepostError)) {
    return false;
  }
  const { code, status = 0 } = error;
  return (
    code === "lock_lost" || code === "no_answer" || [423, 429].includes(status) || status >= 500
  );
}

/** The work, with options or without. */
function withWork<T>(rest: [Work<T>] | [LockOptions, Work<T>]): [LockOptions, Work<T>] {
  const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
  if (typeof work !== "function") {
    throw invalid("the work is no function");
  }
  return [options, work];
}

/** The base URLs of a list, or of a text with commas in between. */
function basesOf(urls: string | readonly string[] | undefined): string[] {
  if (urls === undefined) {
    throw invalid("there is no base URL: is FENCEPOST_URL set?");
  }
  const texts = [urls].flat().flatMap((text) => `${text}`.split(","));
  const bases = texts
    .map((text) => text.trim())
    .filter(Boolean)
    .map(baseOf);
  if (bases.length === 0) {
    throw invalid("there is no base URL");
  }
  return bases;
}

/** A base URL without the slash at its end. Errors do not quote it: it may have a password. */
function baseOf(text: string, at: number): string {
  try {
    const url = new URL(text);
    // URL drops a mark that nothing follows.
    if (/^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#]/.test(text)) {
      return url.href.replace(/\/+$/, "");
    }
  } catch {
    // That quotes it.
  }
  throw invalid(`base URL ${at + 1} is not valid: http or https, a host, and perhaps a path`);
}
