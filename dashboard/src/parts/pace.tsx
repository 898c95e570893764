import type { Schemas } from "../api/client";
import { Badge } from "./signs";
import { Since } from "./time";
import { span } from "./words";

/** Who keeps others waiting at a lock: one holder that hangs, or many in turn. */
export interface PaceOf {
  /** The server's judgement: longer than is usual at the lock. */
  hangs?: boolean | undefined;
  since: string;
  /** When the longest wait began. */
  oldest?: string | undefined;
  usual?: number | undefined;
}

/** The same of a contended lock and the holder that has held it longest. */
export function paceAt(lock: Schemas["AdminBlocker"], holder: Schemas["AdminHolder"]): PaceOf {
  return { hangs: lock.hangs, since: holder.since, oldest: lock.oldest_since, usual: lock.usual_hold_seconds };
}

/** Whether the lock changed hands during the longest wait. */
const changes = ({ since, oldest }: PaceOf): boolean => oldest !== undefined && oldest < since;

/** A holder that hangs, or a busy queue, in two words; nothing of a wait that has just begun. */
export function PaceBadge(of: PaceOf) {
  if (of.hangs)
    return (
      <Badge kind="harm" sign="⚠">
        holder hangs
      </Badge>
    );
  return changes(of) ? <Badge sign="⇄">busy queue</Badge> : null;
}

/** The same with the evidence. */
export function Pace(of: PaceOf) {
  const usual = of.usual === undefined ? "" : span(of.usual * 1000);
  if (of.hangs)
    return (
      <>
        Same holder for <Since at={of.since} />
        {usual && `, usually up to ${usual}`}. The queue does not move.
      </>
    );
  if (!changes(of)) return null;
  return <>Holders change{usual && `, each after up to ${usual}`}. The queue moves.</>;
}
