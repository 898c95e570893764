import { expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { parts, said } from "./revoke-all";

it("names every entry once, a hundred in a request", () => {
  const entries = Array.from({ length: 150 }, (_, i) => ({ id: `e${i}`, fence: i + 1, state: "held" }));
  const seen = { tenant: "acme", holder: "w", entries } as unknown as Schemas["AdminHoldings"];
  const bodies = parts(seen, "its node is gone");
  expect(bodies.map((b) => b.entries.length)).toEqual([100, 50]);
  expect(bodies.flatMap((b) => b.entries)).toEqual(entries.map(({ id, fence }) => ({ id, fence })));
  expect(bodies[1]).toMatchObject({ tenant: "acme", holder: "w", reason: "its node is gone" });
});

it("says of each what came of it", () => {
  const of = (more: object) => said({ id: "e", fence: 1, result: "", ...more } as Schemas["RevokeOutcome"]);
  expect(of({ result: "lock_lost", reason: "released" })).toBe("gone: its client has given it back");
  expect(of({ result: "changed" })).toContain("another one");
  expect(of({ result: "not_tried" })).toContain("try again");
  expect(of({ result: "store_unavailable", may_have_taken_effect: true })).toContain("not known");
  expect(of({ result: "rate_limited" })).toBe("not revoked: rate_limited");
});
