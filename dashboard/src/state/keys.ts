import { signal } from "@preact/signals";
import { kept, paused } from "./live";
import { go } from "./route";

/** Single keys do something. They can be turned off: some people's tools send them. */
export const shortcuts = kept("shortcuts", "on");

/** Whether the list of keys is open. */
export const help = signal(false);

/** The pages, and the key that leads to each after `g`. */
export const places = [
  { key: "o", path: "", name: "Overview" },
  { key: "l", path: "locks", name: "Locks" },
  { key: "b", path: "blocking", name: "Blocking" },
  { key: "c", path: "contention", name: "Contention" },
  { key: "h", path: "holders", name: "Holders" },
  { key: "e", path: "events", name: "Events" },
  { key: "d", path: "orders", name: "Deadlocks" },
  { key: "x", path: "closures", name: "Closures" },
  { key: "t", path: "tenants", name: "Tenants" },
  { key: "w", path: "webhooks", name: "Webhooks" },
  { key: "a", path: "audit", name: "Audit" },
] as const;

/** When `g` was pressed last; what is pressed at once after it leads somewhere. */
let leader = Number.NEGATIVE_INFINITY;

/** Does what a key stands for, unless something is being written. Reports whether it did. */
export function press(e: KeyboardEvent): boolean {
  if (shortcuts.value !== "on" || e.ctrlKey || e.metaKey || e.altKey || isWriting(e.target)) return false;
  const led = e.timeStamp - leader < 1500;
  leader = Number.NEGATIVE_INFINITY;
  const place = places.find((p) => p.key === e.key);
  if (led && place) {
    go(`#/${place.path}`);
    return true;
  }
  switch (e.key) {
    case "g":
      leader = e.timeStamp;
      return true;
    case "/":
      return search();
    case "p":
      paused.value = !paused.value;
      return true;
    case "?":
      help.value = true;
      return true;
    case "Enter":
      return open(e.target);
    case "j":
      return step(1);
    case "k":
      return step(-1);
  }
  return false;
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.closest("input, textarea, select, dialog") !== null || target.isContentEditable)
  );
}

function focus(element: HTMLElement | null | undefined): boolean {
  element?.focus();
  return element != null;
}

/** Whether the page that comes is gone to for its field for a search. */
let searching = false;

/** Goes to the field for a search; from a page that has none to that of Locks. */
function search(): boolean {
  if (focus(document.querySelector<HTMLElement>("[data-search]"))) return true;
  searching = true;
  go("#/locks");
  return true;
}

/** Has the keyboard go on where a page that has come begins: at its head, or at the field for which it was opened. */
export function arrived(): void {
  const at = searching ? "[data-search]" : "#main h1";
  searching = false;
  focus(document.querySelector<HTMLElement>(at));
}

/** Follows the first link of a row that has the focus itself. */
function open(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement) || !target.matches("[data-row]:not(a)")) return false;
  const link = target.querySelector("a");
  link?.click();
  return link !== null;
}

/** Goes to the next or previous row of the list on the screen. */
function step(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.findIndex((r) => r === document.activeElement || r.contains(document.activeElement));
  return focus(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))]);
}
