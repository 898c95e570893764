import type { Schemas } from "../api/client";
import { Since } from "../parts/time";
import { count } from "../parts/words";
import { pending } from "./webhooks-all";

type Attempt = Schemas["Attempt"];

interface FailingOf {
  of: Pick<Schemas["Webhook"], "failing_since" | "disabled" | "paused">;
  /** The last attempt that failed, if one is known. */
  why: Attempt | undefined;
  /** How it does, once that is known. */
  state: Pick<Schemas["AdminWebhook"], "pending" | "pending_more" | "failures" | "failing_since"> | undefined;
}

/** Says of a webhook that fails why, for how long, and how much its receiver has not got. */
export function Failing({ of, why, state }: FailingOf) {
  // Take both figures from one answer: the two answers can be from before and after a change.
  const since = state ? state.failing_since : of.failing_since;
  if (!since && !of.disabled) return null;
  return (
    <div class="note harm" role="status">
      <p>
        <span aria-hidden="true">⚠ </span>
        {why ? (
          <>
            <b>{reason(why)}</b>, <Since at={why.at} ago />.
          </>
        ) : (
          <b>No delivery succeeds.</b>
        )}{" "}
        {since && (
          <>
            Every attempt has failed for <Since at={since} />
            {state?.failures ? `: ${count(state.failures)} so far.` : "."}
          </>
        )}
      </p>
      {state && (state.pending > 0 || state.pending_more) && (
        <p>
          Pending deliveries: <b>{pending(state)}</b>.
        </p>
      )}
    </div>
  );
}

const words: Partial<Record<Attempt["outcome"], string>> = {
  throttled: "The receiver asked for a lower rate",
  gone: "The receiver answered 410: it wants no more deliveries",
  rejected: "The server did not send it",
};

/** Why an attempt failed, as the beginning of a sentence. */
export function reason(of: Attempt): string {
  if (of.error) return of.error[0]?.toUpperCase() + of.error.slice(1);
  if (of.status !== undefined) return `The receiver answered ${of.status}`;
  return words[of.outcome] ?? "The last attempt failed";
}

const failures: readonly Attempt["outcome"][] = ["failed", "throttled", "gone", "rejected"];

/** The newest attempt that failed, of all of these deliveries and of what was known before. */
export function lastFailure(all: readonly Schemas["Delivery"][], before?: Attempt): Attempt | undefined {
  const failed = all.flatMap((d) => d.attempts).filter((a) => failures.includes(a.outcome));
  return failed.reduce((last, a) => (last && last.at >= a.at ? last : a), before);
}
