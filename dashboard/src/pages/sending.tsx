import type { Schemas } from "../api/client";
import { Badge } from "../parts/signs";
import { Since } from "../parts/time";

/** The types of events, in words. */
export function told(events: readonly string[]): string {
  return events.includes("*") ? "everything" : events.map((e) => e.replace(/^lock\./, "")).join(", ");
}

/** Whether anything is sent, and if not, why. */
export function Sending({ of }: { of: Pick<Schemas["Webhook"], "paused" | "disabled" | "failing_since"> }) {
  if (of.paused) return <Badge sign="‖">paused</Badge>;
  if (of.disabled) {
    return (
      <Badge kind="harm" sign="✕">
        {of.disabled === "gone" ? "stopped: the receiver wants nothing more" : "stopped: it failed for five days"}
      </Badge>
    );
  }
  if (of.failing_since) {
    return (
      <Badge kind="harm" sign="⚠">
        has failed for <Since at={of.failing_since} />
      </Badge>
    );
  }
  return (
    <Badge kind="held" sign="✓">
      sends
    </Badge>
  );
}
