import { expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { oldestOf, worstFirst } from "./blocking";

type Tree = Schemas["BlockingTree"];

const tree = (holder: string, waiting: number, ...since: string[]) =>
  ({
    holder,
    waiting,
    heads: [],
    waits: since.map((s) => ({ enqueued_at: `2026-01-02T15:00:${s}.000Z` })),
  }) as unknown as Tree;

it("has holders that hang first, then those for whom most wait, then where somebody has waited for longest", () => {
  const all = [tree("young", 2, "30", "20"), tree("few", 1, "01"), tree("old", 2, "40", "10"), tree("cut", 2)];
  expect(worstFirst(all).map((t) => t.holder)).toEqual(["old", "young", "cut", "few"]);
  const hangs = { ...tree("hangs", 1, "50"), heads: [{ hangs: true }] } as unknown as Tree;
  expect(worstFirst([...all, hangs])[0]?.holder).toBe("hangs");
  expect([oldestOf(all[0] as Tree), oldestOf(all[3] as Tree)]).toEqual(["2026-01-02T15:00:20.000Z", undefined]);
});
