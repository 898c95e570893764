import { expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { type Node, nest } from "./tree";

/** A tree as it is written: `a(b(c) d)`. */
function written(nodes: Node[]): string {
  return nodes.map((n) => n.wait.id + (n.below.length > 0 ? `(${written(n.below)})` : "")).join(" ");
}

it.each([
  ["", ""],
  ["a1 b1", "a b"],
  ["a1 b2 c3 d2 e1", "a(b(c) d) e"],
  ["a1 b2 c2 d1 e2 f3", "a(b c) d(e(f))"],
  ["a1 b3 c3", "a(b(c))"], // a level is missing: no entry is lost
])("makes of the lines %s the tree %s", (lines, tree) => {
  const waits = lines.split(" ").filter(Boolean);
  const all = waits.map((w) => ({ id: w[0], depth: Number(w[1]) }) as unknown as Schemas["BlockedWait"]);
  expect(written(nest(all))).toBe(tree);
});
