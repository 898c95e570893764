// What servers send, with the names of the HTTP contract in camel case.

/** How entries share a lock. */
export type Mode = "exclusive" | "shared" | "semaphore";

/** One lock of a set. */
export interface Claim {
  name: string;
  mode?: Mode | undefined;
  limit?: number | undefined;
  permits?: number | undefined;
}

/** A holder of a lock. */
export interface Holder {
  holder: string;
  since: string;
  fence: number;
  mode: Mode;
  limit?: number;
  permits?: number;
  expiresAt?: string;
  metadata?: Record<string, string>;
}

/** An entry that waits for a lock. */
export interface Waiter {
  /** 1 is next. */
  position: number;
  holder: string;
  mode: Mode;
  limit?: number;
  permits?: number;
  enqueuedAt: string;
  waitedSeconds: number;
  metadata?: Record<string, string>;
}

/** Waiters ask the holder to finish. Nothing is taken away. */
export interface ReleaseRequested {
  /** When the first of them asked. */
  since: string;
  /** The worker that asked first. */
  by: string;
  waiting: number;
  wishedAt: string;
}

/** Percentiles in seconds. */
export interface Percentiles {
  p50: number;
  p90: number;
  p99: number;
}

/** A lock with its holders and waiters. */
export interface Lock {
  name: string;
  holders: Holder[];
  waiters: Waiter[];
  waiting: number;
  /** The newest that was granted, as far as the server knows. */
  fence?: number;
  /** Of a semaphore. */
  permitsHeld?: number;
  /** Of a semaphore: those that its entries have. */
  limits?: number[];
  figures: {
    acquisitions: number;
    expirations: number;
    waitSeconds?: Percentiles;
    holdSeconds?: Percentiles;
    recommendedTtlSeconds?: number;
  };
  releaseRequested?: ReleaseRequested;
  closed?: { until?: string; reason?: string };
  revision: number;
}

/** A lock in a list. */
export interface LockSummary {
  name: string;
  state: "held" | "contended";
  holders: Holder[];
  waiting: number;
  fence?: number;
}

/** An event of a stream, a webhook or a callback. */
export interface FencepostEvent {
  id: string;
  /** Such as `lock.acquired`, or `events.missed`. */
  type: string;
  timestamp: string;
  data: EventData;
}

/** What happened, with the entry and the lock. */
export interface EventData {
  number: number;
  tenant?: string;
  lock?: string;
  /** Of a set, instead of lock. */
  locks?: string[];
  entry?: EventEntry;
  reason?: string;
  held?: boolean;
  waitedSeconds?: number;
  heldSeconds?: number;
  /** Of `events.missed`: the id before what is missing, and the one after it. */
  after?: string;
  before?: string;
  [field: string]: unknown;
}

/** The entry of an event. */
export interface EventEntry {
  id: string;
  mode?: Mode;
  limit?: number;
  permits?: number;
  locks?: Claim[];
  holder: string;
  fence?: number;
  ttlSeconds: number;
  expiresAt?: string;
  /** Only an entry's own callback has it. Keep it out of logs. */
  token?: string;
  enqueuedAt: string;
  metadata?: Record<string, string>;
}

/** A problem that a server reports, RFC 9457. */
export interface Problem {
  title: string;
  code: string;
  type?: string;
  status?: number;
  detail?: string;
  requestId?: string;
  field?: string;
  reason?: string;
  revokeReason?: string;
  mayHaveTakenEffect?: boolean;
  holders?: Holder[];
  waiting?: number;
  until?: string;
  [field: string]: unknown;
}

/** An entry of one lock or of a set, that waits or holds. */
export interface Entry {
  id: string;
  state: string;
  token: string;
  ttlSeconds: number;
  fence?: number;
  locks?: { name: string; fence: number }[];
  releaseRequested?: ReleaseRequested;
}

/** The entry in the text of an answer, or undefined if it is none. */
export function entryOf(value: unknown): Entry | undefined {
  const e = value as Partial<Entry> | null | undefined;
  const named = typeof e?.id === "string" && typeof e.token === "string" && e.token !== "";
  const valid = named && isTtl(e) && [e, ...(e.locks ?? [])].every(hasFence);
  return valid ? (e as Entry) : undefined;
}

/** Fences are revisions, below 2^53. What is beyond would be rounded, and two of them be equal. */
function hasFence({ fence = 0 }: { fence?: number }): boolean {
  return Number.isSafeInteger(fence);
}

function isTtl(e: Partial<Entry>): boolean {
  return typeof e.ttlSeconds === "number" && e.ttlSeconds > 0;
}

/** The JSON value of a text with its names in camel case, or undefined. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text, camel);
  } catch {
    return undefined;
  }
}

/** The names in metadata are the user's. */
function camel(name: string, value: unknown): unknown {
  if (name === "metadata" || typeof value !== "object" || value === null || Array.isArray(value)) {
    return value;
  }
  const renamed = Object.entries(value).map(([key, field]) => [
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
    field,
  ]);
  return Object.fromEntries(renamed);
}
