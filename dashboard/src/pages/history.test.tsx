import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { averageAt, during, Evidence, told } from "./history";

afterEach(cleanup);

it("says what an event says", () => {
  const of = (e: object) => told({ at: "", event: "1-0", ...e } as Schemas["PastEvent"]);
  expect(of({ type: "lock.acquired", number: 7, lasted_seconds: 2 })).toBe("fence 7, waited 2 s");
  expect(of({ type: "lock.revoked", number: 7, lasted_seconds: 2, revoked_by: "ann", reason: "its node" })).toBe(
    "fence 7, held 2 s, by ann: its node",
  );
});

it("shows what was in a step, or else what was last", () => {
  const at = (seconds: number) => ({ at: new Date(1e12 + seconds * 1000).toISOString() }) as Schemas["PastEvent"];
  const all = Array.from({ length: 20 }, (_, i) => at(100 - 5 * i));
  expect(during(all, at(35).at)).toEqual([60, 55, 50, 45, 40, 35].map(at));
  for (const none of [null, "", "<b>"]) expect(during(all, none)).toEqual(all.slice(0, 15));
});

it("says nothing of leases without evidence, and with it what it is", () => {
  const none = { late_renewals: 0, stale_writes: 0, worked_after_expiry: 0, words: [], signs: [] };
  const { container, rerender } = render(<Evidence of={none} />);
  expect(container.textContent).toBe("");
  const sign = { at: "2026-01-02T15:04:05.000Z", entry: "e", fence: 7, kind: "released_after_expiry" as const };
  rerender(<Evidence of={{ ...none, worked_after_expiry: 1, words: ["it still worked"], signs: [sign] }} />);
  expect(container.textContent).toContain("It still worked.");
  expect(container.textContent).toContain("a holder tried to release after its lease had expired, fence 7");
});

it("knows how many waited in the step from which one comes, and not in others", () => {
  const heat = { from: "2026-01-02T15:00:00.000Z", step_seconds: 30, average: [0, 1.5, 3] };
  const then = (time: string) => averageAt(heat, `2026-01-02T${time}.000Z`);
  expect(["15:00:00", "15:01:00", "15:01:30", "14:59:00"].map(then)).toEqual([0, 3, undefined, undefined]);
  expect(averageAt(undefined, heat.from)).toBeUndefined();
});
