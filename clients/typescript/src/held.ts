import { type Reading, since } from "./clock.js";
import { asyncDispose, type Core } from "./core.js";
import { cancelled, FencepostError, LockLost, lostOf, overdue } from "./errors.js";
import { type HoldOptions, marginOf, namesOf, type Target, type TryOptions } from "./options.js";
import { Again } from "./repeat.js";
import { type Request, requestTimeout } from "./transport.js";
import type { Entry, ReleaseRequested } from "./wire.js";

const released = Symbol("released");

/**
 * A lock, or a set of locks, that this process holds. The client renews it in the background until
 * it is released or lost.
 *
 * It counts as lost one margin before its lease can end: the lease counts from when the last
 * successful request was sent. A process can stop between any check and a write, so the resource
 * that is written has to compare the fence.
 */
export class Held {
  /** Of the entry, as lists and events have it. */
  readonly id: string;
  /** Of the lock; of a set, all names with commas in between. */
  readonly name: string;
  /** Grows from each grant of a lock to the next. All locks of a set have the same. */
  readonly fence: number;
  readonly #core: Core;
  readonly #of: Target;
  readonly #entry: Entry;
  readonly #options: TryOptions;
  readonly #granted: number; // by the monotonic clock
  #since: Reading; // when the last successful request was sent
  #ended: LockLost | typeof released | undefined; // why it is not held any more
  #work: AbortController | undefined; // made when its signal is asked for
  #renewing: AbortController | undefined;
  #cancelRenewal: (() => void) | undefined;
  #cancelExpiry: (() => void) | undefined;
  #failure: FencepostError | undefined; // of the last renewal
  #asked: ReleaseRequested | undefined; // that was reported last
  #released: Promise<void> | undefined;
  #cancelRest: (() => void) | undefined; // the work is over, and the lock is kept

  /** @internal */
  constructor(core: Core, of: Target, entry: Entry, options: TryOptions, since: Reading) {
    const now = core.clock.read();
    const { id, token, ttlSeconds, locks } = entry;
    this.id = id;
    this.name = of.k && locks ? namesOf(locks) : of.name;
    this.fence = entry.fence ?? locks?.[0]?.fence ?? 0;
    this.#core = core;
    this.#of = of;
    this.#entry = { id, token, ttlSeconds, state: "held", ...(locks && { locks }) };
    this.#options = options;
    this.#since = since;
    this.#granted = now.monotonic;
    core.keep(this, now);
    this.look(now);
  }

  /** The fences of a set, by name of the lock. `lockAny` gives the granted ones. */
  get fences(): Record<string, number> {
    const locks = this.#entry.locks ?? [{ name: this.name, fence: this.fence }];
    return Object.fromEntries(locks.map((lock) => [lock.name, lock.fence]));
  }

  /**
   * For the work under the lock. It is aborted with a {@link LockLost} as reason at the deadline at
   * the latest, and with a FencepostError of the code `released` when the lock is released.
   */
  get signal(): AbortSignal {
    if (!this.#work) {
      this.#work = new AbortController();
      const why = this.#over;
      if (why) {
        this.#work.abort(errorOf(why));
      }
    }
    return this.#work.signal;
  }

  /** Seconds from the deadline to the earliest end of the lease. */
  get margin(): number {
    return marginOf(this.#options, this.#entry.ttlSeconds);
  }

  /** Seconds until the deadline, by the clocks; 0 or less after it. */
  get left(): number {
    return this.#left(this.#core.clock.read());
  }

  /**
   * The token of the entry: a program that has it can renew and release the lock. Hand it over
   * to a process that calls {@link Fencepost.adopt}, and close the client here without a release.
   * It is a secret.
   */
  get token(): string {
    return this.#entry.token;
  }

  /** Why the lock is lost, or undefined. It reads the clocks, and changes nothing. */
  get lost(): LockLost | undefined {
    const lost = this.#over ?? this.#late(this.#core.clock.read());
    return lost === released ? undefined : lost;
  }

  /**
   * Throws if the lock is not held any more. It reads the clocks, and asks no server: call it after
   * what blocks the event loop, which also delays the signal.
   */
  check(): void {
    this.#overdue(this.#core.clock.read());
    this.throwIfEnded();
  }

  /** @internal Throws if the lock is lost, and not if it is released. */
  throwIfLost(): void {
    this.#overdue(this.#core.clock.read());
    if (this.#ended instanceof LockLost) {
      throw this.#ended;
    }
  }

  /** @internal Like check, without a look at the clocks. */
  throwIfEnded(): void {
    const why = this.#over;
    if (why) {
      throw errorOf(why);
    }
  }

  /**
   * Gives the lock back, and aborts the signal. It tries until the deadline and no longer. If it
   * fails, it logs why, and the lock expires with its TTL. If the lock was lost before, it sends
   * nothing and throws the {@link LockLost}. A second call returns what the first does. With
   * {@link TryOptions.atLeast} it returns at once, and releases the lock when that is over.
   */
  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** Releases the lock at the end of `await using`. A failure is only logged. */
  async [asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }

  async #release(): Promise<void> {
    this.check();
    const { clock } = this.#core;
    const rest = this.#granted + (this.#options.atLeast ?? 0) - clock.read().monotonic;
    if (rest <= 0) {
      return this.#releaseNow();
    }
    this.#cancelRest = clock.timer(rest, () => {
      if (!this.#overdue(clock.read())) {
        void this.#releaseNow().catch(() => {}); // logged
      }
    });
    this.#work?.abort(errorOf(released));
  }

  async #releaseNow(): Promise<void> {
    this.#end(released);
    try {
      await this.#core.leave((signal) => this.#giveBack(signal));
    } catch (error) {
      if (error instanceof FencepostError && error.code === "lock_lost") {
        return; // an earlier request released it
      }
      this.#log("a lock could not be released and expires", error);
      throw error;
    }
  }

  async #giveBack(signal: AbortSignal): Promise<void> {
    const scope = { left: this.#left, held: true, signal };
    const request = releaseOf(this.#of, this.#entry);
    await this.#core.transport.repeat(scope, (attempt) =>
      this.#core.transport.try(attempt, request, signal),
    );
  }

  /** @internal Ends the work with another signal, which cancels it. */
  follow(signal: AbortSignal | undefined): void {
    const work = this.signal;
    const cancel = () => this.#work?.abort(signal?.reason);
    signal?.addEventListener("abort", cancel);
    work.addEventListener("abort", () => signal?.removeEventListener("abort", cancel));
    if (signal?.aborted) {
      cancel();
    }
  }

  /** @internal Ends the lock without releasing it. */
  close(): void {
    this.#end(new LockLost(this.name, "closed"));
  }

  /**
   * @internal Ends the lock if its deadline has come. Otherwise it sets the timers, which stand
   * still while the machine is suspended.
   */
  look(now: Reading): void {
    if (this.#overdue(now) || this.#ended) {
      return;
    }
    const { timer } = this.#core.clock;
    this.#cancelExpiry?.();
    this.#cancelExpiry = timer(this.#left(now), () => this.look(this.#core.clock.read()));
    if (!this.#renewing) {
      this.#cancelRenewal?.();
      this.#cancelRenewal = timer(Math.max(this.#renewIn(now), 0), () => void this.#renew());
    }
  }

  #left = (now: Reading): number => this.#entry.ttlSeconds - this.margin - since(now, this.#since);

  /**
   * A third of the TTL, up to a tenth of that sooner or later: many locks do not renew at once. A
   * fiftieth of it is a step, in which they do: requests in one turn of the event loop cost less.
   */
  #renewIn(now: Reading): number {
    const third = this.#entry.ttlSeconds / 3;
    const due = third * (0.92 + Math.random() * 0.18) - since(now, this.#since);
    const step = third / 50;
    return Math.floor((now.monotonic + due) / step) * step - now.monotonic;
  }

  /** Why the lock is not held any more, for its user. */
  get #over(): LockLost | typeof released | undefined {
    return this.#cancelRest ? released : this.#ended;
  }

  #overdue(now: Reading): boolean {
    const lost = this.#ended ? undefined : this.#late(now);
    if (lost) {
      this.#end(lost);
    }
    return lost !== undefined;
  }

  /** The loss, if the deadline has come. */
  #late(now: Reading): LockLost | undefined {
    return this.#left(now) > 0
      ? undefined
      : overdue(this.name, since(now, this.#since), this.#failure);
  }

  #end(why: LockLost | typeof released): void {
    if (this.#ended) {
      return;
    }
    this.#ended = why;
    this.#cancelRenewal?.();
    this.#cancelExpiry?.();
    this.#cancelRest?.();
    this.#core.drop(this);
    this.#renewing?.abort();
    this.#work?.abort(errorOf(why));
    if (why !== released && !this.#cancelRest) {
      this.#log("a lock is lost", why);
    }
  }

  /** Renews the lock until one request succeeds, or the deadline has come, which ends it. */
  async #renew(): Promise<void> {
    this.#renewing = new AbortController();
    const { signal } = this.#renewing;
    const scope = { left: this.#left, held: true, signal };
    try {
      let sent = this.#since;
      const entry = await this.#core.transport.repeat(scope, (attempt) => {
        sent = attempt.begun;
        const request = renewalOf(this.#of, this.#entry);
        return this.#core.transport
          .tryEntry(attempt, request, signal)
          .catch((error) => this.#failed(error));
      });
      this.#renewed(sent, entry);
    } catch (error) {
      // Without an answer it stays: it is too late for another renewal, and the deadline ends it.
      if (error instanceof FencepostError && error.code === "lock_lost") {
        this.#end(lostOf(this.name, error));
      }
    }
  }

  /**
   * Makes each failure of a renewal but 410 one to try again after. A bearer token that is refused
   * now may be replaced before the deadline.
   */
  #failed(error: unknown): never {
    const failure = error instanceof Again ? error.error : error;
    if (!(failure instanceof FencepostError) || failure.code === "lock_lost") {
      throw error;
    }
    this.#failure = failure;
    throw error instanceof Again ? error : new Again(failure);
  }

  /** Moves the deadline, unless it has come while the answer was on its way. */
  #renewed(sent: Reading, { ttlSeconds, releaseRequested: asked }: Entry): void {
    const now = this.#core.clock.read();
    if (this.#overdue(now) || this.#ended) {
      return;
    }
    this.#since = sent;
    this.#entry.ttlSeconds = ttlSeconds;
    this.#renewing = this.#failure = undefined;
    const before = this.#asked;
    this.#asked = asked;
    this.look(now);
    if (asked && !this.#cancelRest && (asked.since !== before?.since || asked.by !== before.by)) {
      void this.#report(asked);
    }
  }

  async #report(asked: ReleaseRequested): Promise<void> {
    try {
      await this.#options.onReleaseRequested?.(asked); // it may be async
    } catch (error) {
      this.#log("onReleaseRequested failed", error);
    }
  }

  #log(message: string, error: unknown): void {
    this.#core.log(message, { lock: this.name, fence: this.fence, error });
  }
}

/** The error of a lock that ended. A release makes none unless it is asked for. */
function errorOf(why: LockLost | typeof released): FencepostError {
  return why === released
    ? new FencepostError({ code: "released", title: "the lock is released" })
    : why;
}

/** Renews first: the client does not know when the lease of the token began. */
export async function adopt(
  core: Core,
  of: Target,
  token: string,
  options: HoldOptions,
  signal: AbortSignal,
): Promise<Held> {
  let sent = core.clock.read();
  const entry = { id: "", state: "", token, ttlSeconds: 3 * requestTimeout };
  const scope = { left: core.within(core.retryFor), signal };
  const renewed = await core.transport.repeat(scope, (attempt) => {
    sent = attempt.begun;
    return core.transport.tryEntry(attempt, renewalOf(of, entry), signal).catch((error) => {
      throw error instanceof FencepostError && error.code === "lock_lost"
        ? lostOf(of.name, error)
        : error;
    });
  });
  if (renewed.state !== "held") {
    throw new LockLost(of.name, "not_granted");
  }
  if (signal.aborted) {
    throw cancelled(signal.reason);
  }
  const held = new Held(core, of, renewed, options, sent);
  held.throwIfEnded();
  return held;
}

export function renewalOf(of: Target, entry: Entry): Request {
  return {
    method: "PUT",
    path: `${of.heldPath(entry.id)}/renew`,
    token: entry.token,
    timeout: Math.min(requestTimeout, entry.ttlSeconds / 3),
  };
}

export function releaseOf(of: Target, entry: Entry): Request {
  return { method: "DELETE", path: of.heldPath(entry.id), token: entry.token };
}
