import type { Problem } from "./wire.js";

interface Details {
  status?: number | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** Why a call failed: the problem that a server sent, or one with a code of the client. */
export class FencepostError extends Error {
  /** For a program, such as `lock_held`. Empty if what answered is no server of Fencepost. */
  readonly code: string;
  /** Of the answer, if there was one. */
  readonly status: number | undefined;
  /** What is wrong with this request, for a person. */
  readonly detail: string | undefined;
  /** Finds the request in the server's log. */
  readonly requestId: string | undefined;
  /** Seconds after which the server expects that a retry succeeds. */
  readonly retryAfter: number | undefined;
  /** All fields of the problem, such as `holders`. */
  readonly problem: Problem;

  constructor(problem: Problem, details: Details = {}) {
    super(message(problem), details.cause === undefined ? {} : { cause: details.cause });
    this.name = new.target.name;
    this.problem = problem;
    this.code = problem.code;
    this.status = details.status;
    this.detail = problem.detail;
    this.requestId = problem.requestId;
    this.retryAfter = details.retryAfter;
  }
}

function message(problem: Problem): string {
  const detail = problem.detail ? `: ${problem.detail}` : "";
  const request = problem.requestId ? `, request ${problem.requestId}` : "";
  return `${problem.title}${detail}${problem.code ? ` (${problem.code}${request})` : ""}`;
}

/** Another entry holds the lock, and the call does not wait. */
export class LockHeld extends FencepostError {}
/** The lock was not granted within the wait. */
export class WaitTimeout extends FencepostError {}
/** An operator closed the lock for new entries. */
export class LockClosed extends FencepostError {}
/** Waiting would close a cycle of waits. */
export class Deadlock extends FencepostError {}
/** A later call with `onlyNewest` took its place in the queue. */
export class Superseded extends FencepostError {}
/** No server answered in time. The request may have taken effect. */
export class NoAnswer extends FencepostError {}
/** A webhook is not signed with a secret of the receiver, or not of now. */
export class BadWebhook extends FencepostError {}
/** The bearer token is refused: status 401. */
export class Unauthenticated extends FencepostError {}
/** The bearer token does not allow this, or the lock has another token: status 403. */
export class Forbidden extends FencepostError {}
/** An option, a name or a header that cannot be sent, or that the server refuses. */
export class InvalidRequest extends FencepostError {}
/** The signal of the call was aborted, or the client closed. Its `cause` is the signal's reason. */
export class Cancelled extends FencepostError {}

/**
 * A lock is not held any more, or an entry in a queue is gone. Work under the lock has to stop. To
 * go on, acquire again: the fence is then greater.
 */
export class LockLost extends FencepostError {
  /** Name of the lock; of a set, all names with commas in between. */
  readonly lock: string;
  /**
   * What the server reports, such as `expired` or `revoked`, or `deadline` (no renewal succeeded in
   * time), `closed` (the client was) or `not_granted` (an event is no grant to claim).
   */
  readonly reason: string;
  /** What the operator wrote who revoked the entry. */
  readonly revokeReason: string | undefined;

  constructor(lock: string, reason: string, problem: Partial<Problem> = {}, details: Details = {}) {
    const why = problem.revokeReason ? `: ${problem.revokeReason}` : "";
    const title = `${lock} is lost: ${reason}${why}`;
    super({ ...problem, code: "lock_lost", reason, title }, details);
    this.lock = lock;
    this.reason = reason;
    this.revokeReason = problem.revokeReason;
  }
}

const types: Record<string, typeof FencepostError> = {
  lock_held: LockHeld,
  wait_timeout: WaitTimeout,
  lock_closed: LockClosed,
  deadlock: Deadlock,
  superseded: Superseded,
  invalid_request: InvalidRequest,
};
const statuses: Record<number, typeof FencepostError> = { 401: Unauthenticated, 403: Forbidden };

/** The error of its code. */
export function errorOf(problem: Problem, details: Details): FencepostError {
  // A replica that drains hands an entry over, with its token.
  const { entry: _, set: __, ...shown } = problem;
  const type = types[problem.code] ?? statuses[details.status ?? 0] ?? FencepostError;
  return new type(shown as Problem, details);
}

/** Returns why the entry is gone when a server reports `lock_lost`. */
export function lostOf(lock: string, error: FencepostError): LockLost {
  const { title: _, ...problem } = error.problem;
  return new LockLost(lock, problem.reason ?? "unknown", problem, { status: error.status });
}

/** What went wrong at a base URL. */
export function noAnswer(cause?: unknown, base = ""): NoAnswer {
  const why = [base, textOf(cause)].filter(Boolean).join(": ");
  const problem = { code: "no_answer", title: "no server answered in time" };
  return new NoAnswer(why ? { ...problem, detail: why } : problem, { cause });
}

/** The innermost message: that of fetch says only that it failed. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return error === undefined ? "" : String(error);
  }
  const { cause, errors } = error as { cause?: unknown; errors?: unknown[] };
  return textOf(cause ?? errors?.[0]) || error.message || error.name;
}

/** What is refused before anything is sent. */
export function invalid(title: string, cause?: unknown): InvalidRequest {
  return new InvalidRequest({ code: "invalid_request", title }, { cause });
}

/** No renewal succeeded until the deadline. */
export function overdue(lock: string, seconds: number, last: FencepostError | undefined): LockLost {
  const error = last ? `; the last error: ${last.message}` : "";
  const detail = `no renewal has succeeded for ${seconds.toFixed(1)} s${error}`;
  return new LockLost(lock, "deadline", { detail }, { cause: last });
}

export function cancelled(cause: unknown): Cancelled {
  return new Cancelled({ code: "cancelled", title: "the call was cancelled" }, { cause });
}
