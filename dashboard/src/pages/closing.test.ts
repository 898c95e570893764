import { expect, it } from "vitest";
import { isPattern, names, spans, untilAfter } from "./closing";

it("ends at a full minute, not before the time that was asked for, and within what the server takes", () => {
  const now = Date.parse("2026-01-02T15:04:05.250Z");
  expect(untilAfter(now, 15)).toBe("2026-01-02T15:20:00.000Z");
  expect(untilAfter(Date.parse("2026-01-02T15:04:00Z"), 60)).toBe("2026-01-02T16:04:00.000Z");
  for (const s of spans) expect(Date.parse(untilAfter(now, s.minutes)) - now).toBeLessThan(6 * 24 * 3_600_000);
});

it("knows which locks a pattern names", () => {
  for (const [pattern, yes, no] of [
    ["orders:42", ["orders:42"], ["orders:421", "Orders:42", "x:orders:42"]],
    ["orders:*", ["orders:", "orders:42"], ["order:1", "ORDERS:1"]],
    ["*:eu", ["a:eu", ":eu"], ["a:eu1"]],
    ["a*b*c", ["abc", "a-b-c", "abbcc"], ["acb", "ab", "ac"]],
    ["aa*aa", ["aaaa", "aaxaa"], ["aaa"]],
    ["*", ["", "anything"], []],
  ] as const) {
    for (const n of yes) expect([pattern, n, names(pattern, n)]).toEqual([pattern, n, true]);
    for (const n of no) expect([pattern, n, names(pattern, n)]).toEqual([pattern, n, false]);
  }
});

it("takes for a pattern what the server would", () => {
  expect(["*", "orders:42", "a*b*"].map(isPattern)).toEqual([true, true, true]);
  expect(["", "a b", "<b>", "*".repeat(17), "ä"].map(isPattern)).toEqual([false, false, false, false, false]);
});
