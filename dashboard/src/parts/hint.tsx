import { useId } from "preact/hooks";

/** terms explains the words that a new reader may not know. */
const terms = {
  fence: [
    "What is a fence?",
    "The number of a grant. It only grows. A resource stores the greatest fence it has seen and rejects writes with a smaller one, so a holder whose lease has expired cannot overwrite newer data.",
  ],
  lease: [
    "What is a lease?",
    "A holder keeps the lock until its lease ends, and its client renews the lease. When renewals stop, the lease expires after its TTL, and the next waiter acquires the lock.",
  ],
  token: [
    "What is this token?",
    "A signed JWT that names your tenant and your scopes. The operator of this server creates it with “api token”.",
  ],
  mode: [
    "What is a mode?",
    "Exclusive: one holder. Shared: several readers at the same time. Semaphore: several holders, up to a limit of permits.",
  ],
  position: [
    "What is a position?",
    "The place in the queue. Position 1 acquires the lock next. A set has a position in the queue of each of its locks.",
  ],
  blocked: [
    "What is the total blocked time?",
    "How long requests have waited because of this holder, added up. Two requests that waited 10 s each make 20 s. Waits for earlier holders do not count.",
  ],
  contradiction: [
    "What is a contradicting lock order?",
    "One holder acquired A and then B, another acquired B and then A. If they do that at the same time, they deadlock. Acquire the locks in the same order everywhere, or as one set.",
  ],
  expired: [
    "What is an expired lease?",
    "A lease that ended without a release: the holder crashed, paused or lost its connection, or its TTL is too short. Healthy: 0.",
  ],
  wait: [
    "What is the wait time?",
    "The time from a request to its grant. Half of the requests waited no longer than p50, 99 of 100 no longer than p99.",
  ],
  hold: [
    "What is the hold time?",
    "The time from a grant to the release or expiry. Half of the holders needed no longer than p50, 99 of 100 no longer than p99.",
  ],
  used: ["What does this share mean?", "The share of the last 5 minutes in which the lock had a holder."],
} as const;

export type Term = keyof typeof terms;

/** Hint is a button that explains a term. Escape, or a press elsewhere, closes the text. */
export function Hint({ term }: { term: Term }) {
  const id = useId();
  const [question, answer] = terms[term];
  return (
    <span class="hint">
      <button type="button" class="info" popovertarget={id} aria-label={question} title={question}>
        ?
      </button>
      <span id={id} popover="auto" role="note">
        {answer}
      </span>
    </span>
  );
}
