import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { isHere } from "./door";
import { Figures } from "./figures";
import { HeatMap } from "./heatmap";
import { Contradictions } from "./orders";

afterEach(cleanup);

const text = (of: Parameters<typeof render>[0]): string => render(of).container.textContent ?? "";

const none: Schemas["AdminFigures"] = {
  acquisitions: 0,
  expirations: 0,
  holds: [],
  waits: [],
  recommended_ttl_reason: "too few",
};

it("does not take figures that were forgotten for a lock that nobody was granted", () => {
  const held = text(<Figures figures={none} held />);
  expect(held).toContain("No statistics");
  expect(held).not.toMatch(/0 grants|was not granted|no expired lease/);
  expect(text(<Figures figures={none} held={false} />)).toMatch(/was not granted .* or the replica evicted them/);
});

it("shows the figures that there are", () => {
  const known = text(<Figures figures={{ ...none, acquisitions: 1 }} held />);
  expect(known).toContain("1 grant, no expired lease");
  expect(known).not.toContain("since it started");
});

it("says of orders that they agree only if some were seen", () => {
  const asked = { replica: "r", since: "2026-01-02T15:04:05.000Z" };
  const report: Schemas["LockOrderReport"] = { ...asked, contradictions: [], forgotten: 0, known: 0, orders: [] };
  expect(text(<Contradictions report={report} />)).toContain("No lock orders observed");
  const seen = { tenant: "t", from: "a", to: "b", seen: 1, examples: [] } as unknown as Schemas["SeenOrder"];
  expect(text(<Contradictions report={{ ...report, known: 1, orders: [seen] }} />)).toContain("agree.");
  expect(text(<Contradictions report={{ ...report, forgotten: 7 }} />)).toContain("It evicted some");
});

it("does not say of a time without requests that everybody got a lock", () => {
  const at = "2026-01-02T15:04:05.000Z";
  const map = { from: at, replica: "r", revision: 1, rows: [], server_now: at, step_seconds: 30 };
  expect(text(<HeatMap of={map} />)).toMatch(/No waiters.*since this replica started/);
});

it("speaks of a development server's token only where one may be", () => {
  expect(["localhost", "127.0.0.1", "127.1.2.3", "[::1]"].filter((h) => !isHere(h))).toEqual([]);
  expect(["locks.example.com", "127.evil.example", "10.0.0.1", "localhost.example"].filter(isHere)).toEqual([]);
});
