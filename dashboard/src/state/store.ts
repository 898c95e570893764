import { signal } from "@preact/signals";
import { standAt } from "./clock";

/** Of what is on the screen, by its key: since when the server that told it has not seen the store. */
const told = new Map<string, number>();

/**
 * Since when the store is out of sight of a server that told what is on the screen, by the server's
 * clock: what is shown is as of then. Undefined if it is in sight.
 */
export const outOfSight = signal<number | undefined>(undefined);

/** Notes what an answer says of the store, if it does. */
export function noteStore(key: string, answer: unknown): void {
  if (typeof answer !== "object" || answer === null) return;
  const at = "store_lost_since" in answer ? Date.parse(String(answer.store_lost_since)) : Number.NaN;
  if (Number.isNaN(at)) told.delete(key);
  else told.set(key, at);
  show();
}

/** Forgets what was said with what is not on the screen any more. */
export function forgetStore(key: string): void {
  if (told.delete(key)) show();
}

function show(): void {
  outOfSight.value = told.size === 0 ? undefined : Math.min(...told.values());
  standAt(outOfSight.value);
}
