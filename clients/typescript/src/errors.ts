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
    this.requestId = problem.request_id;
    this.retryAfter = details.retryAfter;
  }
}

function message(problem: Problem): string {
  const detail = problem.detail ? `: ${problem.detail}` : "";
  const request = problem.request_id ? `, request ${problem.request_id}` : "";
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
/** No server answered in time. The request may have taken effect. */
export class NoAnswer extends FencepostError {}
/** A webhook is not signed with a secret of the receiver, or not of now. */
export class BadWebhook extends FencepostError {}
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
    const why = problem.revoke_reason ? `: ${problem.revoke_reason}` : "";
    const title = `${lock} is lost: ${reason}${why}`;
    super({ ...problem, code: "lock_lost", reason, title }, details);
    this.lock = lock;
    this.reason = reason;
    this.revokeReason = problem.revoke_reason;
  }
}

const types: Record<string, typeof FencepostError> = {
  lock_held: LockHeld,
  wait_timeout: WaitTimeout,
  lock_closed: LockClosed,
  deadlock: Deadlock,
};

/** The error of its code. */
export function errorOf(problem: Problem, details: Details): FencepostError {
  // A replica that drains hands an entry over, with its token.
  const { entry: _, set: __, ...shown } = problem;
  return new (types[problem.code] ?? FencepostError)(shown as Problem, details);
}

/** Returns why the entry is gone when a server reports `lock_lost`. */
export function lostOf(lock: string, error: FencepostError): LockLost {
  const { title: _, ...problem } = error.problem;
  return new LockLost(lock, problem.reason ?? "unknown", problem, { status: error.status });
}

export function noAnswer(cause?: unknown): NoAnswer {
  return new NoAnswer({ code: "no_answer", title: "no server answered in time" }, { cause });
}

export function cancelled(cause: unknown): Cancelled {
  return new Cancelled({ code: "cancelled", title: "the call was cancelled" }, { cause });
}
