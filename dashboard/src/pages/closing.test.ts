import { expect, it } from "vitest";
import { hitsInWords } from "./close";
import { isPattern, spans, untilAfter } from "./closing";

it("ends at a full minute, not before the time that was asked for, and within what the server takes", () => {
  const now = Date.parse("2026-01-02T15:04:05.250Z");
  expect(untilAfter(now, 15)).toBe("2026-01-02T15:20:00.000Z");
  expect(untilAfter(Date.parse("2026-01-02T15:04:00Z"), 60)).toBe("2026-01-02T16:04:00.000Z");
  for (const s of spans) expect(Date.parse(untilAfter(now, s.minutes)) - now).toBeLessThan(6 * 24 * 3_600_000);
});

it("takes for a pattern what the server would", () => {
  expect(["*", "orders:42", "a*b"].map(isPattern)).toEqual([true, true, true]);
  expect(["", "a b", "<b>", "a*b*", "ä"].map(isPattern)).toEqual([false, false, false, false, false]);
});

it("says how many locks are touched, and of how many that wait it does not know", () => {
  expect(hitsInWords({ locks: 0, waiting: 0, more: false })).toBe("No matching lock is in use.");
  expect(hitsInWords({ locks: 1, waiting: 1, more: false })).toBe("1 lock in use, 1 request waiting.");
  expect(hitsInWords({ locks: 500, waiting: 120, more: true })).toBe(
    "500 locks in use, at least 120 requests waiting.",
  );
});
