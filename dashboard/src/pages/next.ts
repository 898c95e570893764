import type { Schemas } from "../api/client";
import { many } from "../parts/words";

type View = Schemas["AdminLockView"];
type Waiter = Schemas["AdminWaiter"];

/** The entries that hold a lock when one entry is gone. */
export interface Next {
  granted: Waiter[];
  /** How many hold before as after. */
  stay: number;
}

/** The longest run from the head of the queue in which each tolerates all before it. */
export function nextAfter(view: View, id: string): Next {
  const held = view.holders.some((h) => h.id === id);
  const stay = view.holding - (held ? 1 : 0);
  let mode = view.holders[0]?.mode; // those who hold together hold in one mode
  const granted: Waiter[] = [];
  for (const w of view.waiters) {
    if (w.id === id) continue;
    const before = stay + granted.length;
    if (before > 0 && !tolerates(w, mode, before)) break;
    granted.push(w);
    mode = w.mode;
  }
  return { granted, stay };
}

function tolerates(w: Waiter, mode: string | undefined, before: number): boolean {
  if (w.mode !== mode) return false;
  return w.mode === "shared" || (w.mode === "semaphore" && before < (w.limit ?? 1));
}

/** The same in words. */
export function nextInWords(view: View, id: string): string {
  const { granted, stay } = nextAfter(view, id);
  if (granted.length === 0) {
    if (stay === 0) return "No other waiter: the lock becomes free.";
    const those = view.holders.some((h) => h.id === id) ? "other holder keeps" : "holder keeps";
    return `${many(stay, those, those.replace(" keeps", "s keep"))} it. No waiter is granted.`;
  }
  const names = granted.slice(0, 3).map((w) => `${w.holder} with fence ${w.number}`);
  const rest = granted.length > 3 ? ` and ${granted.length - 3} more` : "";
  const set = granted.some((w) => w.set) ? " A set is granted when it is first at all of its locks." : "";
  return `Granted next: ${names.join(", ")}${rest}.${set}`;
}
