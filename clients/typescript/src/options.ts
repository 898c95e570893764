import { FencepostError, invalid } from "./errors.js";
import type { Claim, Mode, ReleaseRequested } from "./wire.js";

const leastMargin = 0.25; // seconds

/** How to hold. Times are in seconds. */
export interface HoldOptions {
  /**
   * How long before the end of the lease the work has to stop: a tenth of the TTL by default, and
   * at least 0.25. It covers the time from a check to the effect of a write, and clocks that differ
   * in speed. It is at most half of the TTL.
   */
  margin?: number | undefined;
  /**
   * Called while the lock is held when a waiter asks the holder to finish, once for each that is
   * the first to ask. Nothing is taken away.
   */
  onReleaseRequested?: ((asked: ReleaseRequested) => void | Promise<void>) | undefined;
}

/** How to acquire. Times are in seconds. */
export interface TryOptions extends HoldOptions {
  /** The lease: how long a dead holder blocks the lock. 30 by default. */
  ttl?: number | undefined;
  /** `exclusive` by default. */
  mode?: Mode | undefined;
  /** Of a semaphore: how many permits there are. Each entry is judged by its own. */
  limit?: number | undefined;
  /** Of a semaphore: how many of them the entry takes, 1 by default. */
  permits?: number | undefined;
  /** Names this worker; the bearer token's `sub` by default. */
  holder?: string | undefined;
  /** Shown with the lock: up to 16 pairs, 2 KiB in all. */
  metadata?: Record<string, string> | undefined;
  /**
   * How long after the grant the lock is kept, and renewed, although the work has ended. Its release
   * returns at once. A client that is closed leaves the rest to the TTL: one as long covers that.
   */
  atLeast?: number | undefined;
  /** Cancels the call, which then leaves its queue in the background. */
  signal?: AbortSignal | undefined;
}

/** How to acquire, and how long to wait. */
export interface LockOptions extends TryOptions {
  /** How long to queue at most; 60 by default. */
  wait?: number | undefined;
  /** Asks the holder to finish within so many seconds, if the call has to wait. */
  requestRelease?: number | undefined;
  /** Gives up the wait for a later one that has this option, too. */
  onlyNewest?: boolean | undefined;
}

/** Of a set, whose claims have modes and limits of their own. */
export type SetOptions = Omit<LockOptions, "mode" | "limit" | "permits">;
/** Of a set that is not waited for. */
export type TrySetOptions = Omit<TryOptions, "mode" | "limit" | "permits">;

/** How to queue without a connection. */
export interface AsyncOptions extends LockOptions {
  /** Where the servers report the grant, signed with the tenant's callback secret. */
  callbackUrl?: string | undefined;
}

const isText = (value: unknown) => typeof value === "string";
const isFunction = (value: unknown) => typeof value === "function";
const isObject = (value: unknown) => typeof value === "object" && value !== null;
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
const isSeconds = (value: unknown) =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

const valid: Record<string, (value: unknown) => boolean> = {
  ttl: isSeconds,
  wait: isSeconds,
  margin: isSeconds,
  requestRelease: isSeconds,
  atLeast: isSeconds,
  limit: isCount,
  permits: isCount,
  onlyNewest: (value) => typeof value === "boolean",
  name: isText,
  mode: isText,
  holder: isText,
  metadata: isObject,
  callbackUrl: isText,
  prefix: isText,
  state: isText,
  after: isText,
  types: Array.isArray,
  locks: Array.isArray,
  onReleaseRequested: isFunction,
  signal: (value) => isObject(value) && "aborted" in (value as object),
  retryFor: isSeconds,
  propagate: isFunction,
  log: isFunction,
  fetch: isFunction,
  clock: isObject,
};

/** The options of calls. */
export const calling = ["signal"];
export const holding = [...calling, "margin", "onReleaseRequested"];
export const tryingSet = [...holding, "ttl", "holder", "metadata", "atLeast"];
export const trying = [...tryingSet, "mode", "limit", "permits"];
const waiting = ["wait", "requestRelease", "onlyNewest"];
export const lockingSet = [...tryingSet, ...waiting];
export const locking = [...trying, ...waiting];
export const queueing = [...locking, "callbackUrl"];
const claiming = ["name", "mode", "limit", "permits"];

/** Refuses options that are unknown, or of a wrong type. */
export function check(options: object, known: readonly string[]): void {
  if (!isObject(options)) {
    throw invalid("the options are no object");
  }
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !(known.includes(name) && valid[name]?.(value))) {
      throw invalid(known.includes(name) ? `${name} is not valid` : `${name} is no option here`);
    }
  }
}

/** What an acquire needs to know. */
export type Acquire = Omit<AsyncOptions, "signal"> & { ttl: number; wait: number };

export function withDefaults(options: LockOptions, wait = options.wait ?? 60): Acquire {
  const { signal: _, ...rest } = options;
  return { ...rest, ttl: options.ttl ?? 30, wait };
}

/** The margin in seconds. It leaves half of the lease, so that a renewal fits before it. */
export function marginOf(options: HoldOptions, ttl: number): number {
  return Math.min(options.margin ?? Math.max(ttl / 10, leastMargin), ttl / 2);
}

/** What is acquired: a lock, or a set. */
export class Target {
  readonly name: string; // of a set, all names
  readonly claims: readonly Claim[] | undefined;
  readonly k: number | undefined; // how many of the claims suffice; undefined is all

  constructor(name: string | readonly (string | Claim)[], k?: number) {
    if (typeof name === "string") {
      this.name = name;
      return;
    }
    if (!Array.isArray(name)) {
      throw invalid("the name of a lock is no text");
    }
    this.claims = name.map((claim) => (typeof claim === "string" ? { name: claim } : claim));
    for (const claim of this.claims) {
      check(claim, claiming);
    }
    if (k !== undefined && !isCount(k)) {
      throw invalid("k is not valid");
    }
    this.k = k;
    this.name = namesOf(this.claims);
  }

  /** Where it is acquired. */
  get path(): string {
    return this.claims ? "/locksets" : lockPath(this.name);
  }

  /** Where an entry is waited for. */
  entryPath(id: string): string {
    return this.claims ? `/locksets/${segment(id)}` : `${this.path}/entries/${segment(id)}`;
  }

  /** Where an entry is released, and with /renew renewed. */
  heldPath(id: string): string {
    return this.claims ? `/locksets/${segment(id)}` : this.path;
  }

  /** What an acquire sends. Options that were not given are not sent. */
  body(options: Acquire, async: boolean): object {
    const { wait, requestRelease } = options;
    return {
      locks: this.claims,
      any: this.k,
      mode: options.mode,
      limit: options.limit,
      permits: options.permits,
      only_newest: options.onlyNewest || undefined,
      ttl_seconds: options.ttl,
      wait_seconds: wait > 0 ? wait : undefined,
      async: async || undefined,
      callback_url: options.callbackUrl,
      request_release: requestRelease && wait > 0 ? { within_seconds: requestRelease } : undefined,
      holder: options.holder,
      metadata: options.metadata,
    };
  }
}

export function namesOf(claims: readonly { name: string }[]): string {
  return claims
    .map((claim) => claim.name)
    .sort()
    .join();
}

export function lockPath(name: string): string {
  return `/locks/${segment(name)}`;
}

/** A part of a path. URLs would read a dot or two as another path. */
function segment(text: string): string {
  if (typeof text !== "string") {
    throw invalid("the name of a lock is no text");
  }
  if (/^\.{0,2}$/.test(text)) {
    throw new FencepostError({ code: "invalid_name", title: `"${text}" is no name` });
  }
  return encodeURIComponent(text).replace(/%(3A|40|3D|2B)/g, decodeURIComponent);
}
