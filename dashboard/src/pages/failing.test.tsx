import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { Failing, lastFailure, reason } from "./failing";

afterEach(cleanup);

const at = (minute: number): string => `2026-01-02T15:${String(minute).padStart(2, "0")}:05.000Z`;
const attempt = (minute: number, of: Partial<Schemas["Attempt"]> = {}): Schemas["Attempt"] => ({
  at: at(minute),
  outcome: "failed",
  error: `it answered ${minute}`,
  took_seconds: 1,
  ...of,
});
const delivery = (...attempts: Schemas["Attempt"][]): Schemas["Delivery"] => ({
  id: "1-1",
  type: "lock.acquired",
  state: "pending",
  created_at: at(0),
  tried: attempts.length,
  attempts,
});

const text = (of: Parameters<typeof Failing>[0]): string => render(<Failing {...of} />).container.textContent ?? "";

it("finds the last failure among all deliveries, and keeps one that is not listed any more", () => {
  const delivered = attempt(9, { outcome: "delivered" });
  const all = [delivery(attempt(1), attempt(5)), delivery(attempt(3), delivered), delivery()];
  expect(lastFailure(all)?.at).toBe(at(5));
  expect(lastFailure(all, attempt(7))?.at).toBe(at(7));
  expect(lastFailure([], undefined)).toBeUndefined();
});

it("says why it fails, for how long, and how much is pending", () => {
  const state = { pending: 200, pending_more: true, failures: 12, failing_since: at(1) };
  const said = text({ of: { failing_since: at(1), paused: false }, why: attempt(5), state });
  expect(said).toMatch(
    /It answered 5, .* ago.*Every attempt has failed for .*: 12 so far.*Pending deliveries: 200 or more/,
  );
});

it("tells since when and how often of one answer, and not of two that are of different times", () => {
  const old = { pending: 0, failures: 26, failing_since: at(1) };
  const { container } = render(<Failing of={{ failing_since: at(9), paused: false }} why={undefined} state={old} />);
  expect(container.querySelector("time")?.dateTime).toBe(at(1));
  expect(text({ of: { failing_since: at(9), paused: false }, why: undefined, state: { pending: 0 } })).toBe("");
});

it("says nothing of a webhook that does well, and no reason that it does not know", () => {
  expect(text({ of: { paused: false }, why: attempt(5), state: undefined })).toBe("");
  const stopped = text({ of: { paused: false, disabled: "failing" }, why: undefined, state: undefined });
  expect(stopped).toContain("No delivery succeeds.");
  expect(stopped).not.toContain("Pending");
});

it("has words for an attempt without an error", () => {
  const bare = (of: Partial<Schemas["Attempt"]>) => reason({ at: at(1), outcome: "failed", took_seconds: 1, ...of });
  expect([bare({ status: 500 }), bare({ outcome: "gone" }), bare({})]).toEqual([
    "The receiver answered 500",
    "The receiver answered 410: it wants no more deliveries",
    "The last attempt failed",
  ]);
});
