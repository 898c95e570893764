import { signal } from "@preact/signals";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { now, reached, silentFor, standAt, tick } from "./clock";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("stands where the server was last heard of while that is away, and goes on afterwards", () => {
  let away = false;
  const stop = tick(() => away);
  vi.advanceTimersByTime(5000);
  reached();
  const heard = now.value;
  vi.advanceTimersByTime(3000);
  expect(now.value).toBe(heard + 3000);
  away = true;
  vi.advanceTimersByTime(60_000);
  expect(now.value).toBe(heard);
  expect(silentFor.value).toBe(63);
  away = false;
  vi.advanceTimersByTime(1000);
  expect(silentFor.value).toBe(0);
  expect(now.value).toBe(heard + 64_000);
  stop();
});

it("stands at once when the server goes away", () => {
  const away = signal(false);
  const stop = tick(() => away.value);
  reached();
  const heard = now.value;
  vi.advanceTimersByTime(9000);
  away.value = true;
  expect([now.value, silentFor.value]).toEqual([heard, 9]);
  stop();
});

it("stands at an instant after which nothing is known, at once, and goes on afterwards", () => {
  const stop = tick(() => false);
  vi.advanceTimersByTime(5000);
  const lost = now.value - 3000;
  standAt(lost);
  expect(now.value).toBe(lost);
  vi.advanceTimersByTime(60_000);
  expect(now.value).toBe(lost);
  standAt(undefined);
  expect(now.value).toBe(lost + 63_000);
  stop();
});
