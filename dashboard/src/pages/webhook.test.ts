import { expect, it } from "vitest";
import { described } from "./deliveries";
import { told } from "./sending";

it("says what a receiver is told of", () => {
  expect([told(["*"]), told(["lock.acquired", "events.missed"])]).toEqual(["all", "acquired, events.missed"]);
});

it("says what came of an attempt", () => {
  const at = "2026-01-02T15:04:05.000Z";
  expect(described({ at, outcome: "delivered", status: 204, took_seconds: 0.02 })).toBe(
    "delivered, status 204, took 20 ms",
  );
  expect(
    described({
      at,
      outcome: "failed",
      status: 500,
      error: "it answered 500",
      took_seconds: 1,
      clock_skew_seconds: -90,
    }),
  ).toBe("failed, it answered 500, took 1 s, the receiver's clock is 1 min 30 s behind");
});
