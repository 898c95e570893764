import { expect, it } from "vitest";
import { brief, ceiling, line, shade } from "./scale";

it("ends an axis at a number that people read easily", () => {
  expect([0, 0.03, 1, 1.1, 4, 6, 70, 100, 1234, Number.NaN].map(ceiling)).toEqual([
    1, 0.05, 1, 2, 5, 10, 100, 100, 2000, 1,
  ]);
});

it("draws a line from left to right, zero at the bottom, with holes", () => {
  expect(line([0, 5, 10], 10, 100, 50)).toBe("M0.0 50.0L50.0 25.0L100.0 0.0");
  expect(line([1, undefined, 1, 1], 2, 90, 10)).toBe("M0.0 5.0h1.5M60.0 5.0L90.0 5.0");
  expect(line([20], 10, 90, 10)).toBe("M0.0 0.0h1.5");
  expect(line([], 10, 90, 10)).toBe("");
});

it("shades a cell by fixed bounds, and writes what fits", () => {
  expect([0, 0.01, 0.99, 1, 2.9, 3, 9.9, 10, 29, 30, 5000].map(shade)).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
  expect([0, 0.4, 0.99, 1, 2.9, 9.7, 42, 99.9, 100].map(brief)).toEqual(["", "", "", "1", "2", "9", "42", "99", "99+"]);
});
