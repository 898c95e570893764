import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";

interface Steady<T, E> {
  rows: readonly T[];
  /** How many there are that are not among the rows. */
  fresh: number;
  /** Takes over the order in which they are. */
  show: () => void;
  /** What the rows are in. */
  box: RefObject<E | null>;
}

/**
 * Leaves the rows of a live list in their places while the user is at one of them: has it open, in
 * focus or under the pointer. The content of each row stays current.
 */
export function useSteady<T, E extends HTMLElement>(all: readonly T[], key: (of: T) => string): Steady<T, E> {
  const box = useRef<E>(null);
  const before = useRef<readonly T[]>([]);
  const [, again] = useState({});
  const rows = box.current && isBusy(box.current) ? inPlace(before.current, all, key) : all;
  before.current = rows;
  const known = new Set(rows.map(key));
  const show = (): void => {
    before.current = all;
    again({});
  };
  return { rows, fresh: all.filter((of) => !known.has(key(of))).length, show, box };
}

function isBusy(element: HTMLElement): boolean {
  return element.matches(":hover, :focus-within") || element.querySelector("details[open]") !== null;
}

/** The rows of before, as they are now; those that have gone, as they were. */
export function inPlace<T>(before: readonly T[], all: readonly T[], key: (of: T) => string): readonly T[] {
  const now = new Map(all.map((of) => [key(of), of]));
  return before.map((of) => now.get(key(of)) ?? of);
}
