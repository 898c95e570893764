import type { Schemas } from "../api/client";

type Wait = Schemas["BlockedWait"];

/** A wait, and the waits behind it. */
export interface Node {
  wait: Wait;
  below: Node[];
}

/** Makes a tree of its lines: each stands after the one for which it waits, one deeper. */
export function nest(lines: readonly Wait[]): Node[] {
  const top: Node[] = [];
  const open: Node[] = [];
  for (const wait of lines) {
    const node: Node = { wait, below: [] };
    open.length = Math.min(open.length, wait.depth - 1);
    (open[open.length - 1]?.below ?? top).push(node);
    open.push(node);
  }
  return top;
}
