import type { Schemas } from "../api/client";
import { Badge } from "../parts/signs";
import { Since } from "../parts/time";

/** The types of events, in words. */
export function told(events: readonly string[]): string {
  return events.includes("*") ? "all" : events.map((e) => e.replace(/^lock\./, "")).join(", ");
}

/** Whether anything is sent, and if not, why. */
export function Sending({ of }: { of: Pick<Schemas["Webhook"], "paused" | "disabled" | "failing_since"> }) {
  if (of.paused) return <Badge sign="‖">paused</Badge>;
  if (of.disabled) {
    return (
      <Badge kind="harm" sign="✕">
        {of.disabled === "gone" ? "disabled: the receiver answered 410" : "disabled: failed for 5 days"}
      </Badge>
    );
  }
  if (of.failing_since) {
    return (
      <Badge kind="harm" sign="⚠">
        failing for <Since at={of.failing_since} />
      </Badge>
    );
  }
  return (
    <Badge kind="held" sign="✓">
      active
    </Badge>
  );
}
