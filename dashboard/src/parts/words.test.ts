import { describe, expect, it } from "vitest";
import { count, many, quoted, rate, seconds, span, utc } from "./words";

describe("span", () => {
  it.each([
    [0, "0 ms"],
    [250, "250 ms"],
    [1000, "1 s"],
    [1500, "1.5 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [250_000, "4 min 10 s"],
    [3_600_000, "1 h"],
    [7_500_000, "2 h 5 min"],
    [90_000_000, "1 d 1 h"],
    [-5, "0 ms"],
  ])("says %d ms as %s", (ms, text) => {
    expect(span(ms)).toBe(text);
  });
});

it("counts by the second what the ticker counts", () => {
  expect([seconds(-1), seconds(999), seconds(1999), seconds(61_500)]).toEqual(["0 s", "0 s", "1 s", "1 min 1 s"]);
});

it("says numbers, counts and instants", () => {
  expect([count(1234567), many(1, "lock"), many(2, "lock"), utc("2026-01-02T15:04:05.678Z")]).toEqual([
    "1,234,567",
    "1 lock",
    "2 locks",
    "2026-01-02 15:04:05 UTC",
  ]);
});

it("says of what is seldom how often it is in a minute, and not that it never is", () => {
  expect([0, 0.002, 0.03, 2.54, 1200].map((n) => Object.values(rate(n)).join(" "))).toEqual([
    "0 per second",
    "0.1 per minute",
    "1.8 per minute",
    "2.5 per second",
    "1,200 per second",
  ]);
});

it("quotes what a shell would take apart", () => {
  expect([quoted("orders:42"), quoted("it's $HOME"), quoted("")]).toEqual(["orders:42", `'it'\\''s $HOME'`, "''"]);
});
