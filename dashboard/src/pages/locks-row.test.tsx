import { cleanup, render } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { now } from "../state/clock";
import { Row } from "./locks";

const at = Date.parse("2026-01-02T15:04:00Z");
beforeEach(() => {
  now.value = at;
});
afterEach(cleanup);

function lock(expires?: string): Schemas["AdminLock"] {
  const holder = {
    id: "e",
    holder: "w",
    since: "2026-01-02T15:03:00.000Z",
    ttl_seconds: 30,
    fence: 7,
    mode: "exclusive",
  };
  return {
    tenant: "demo",
    name: "orders:1",
    state: "held",
    holding: 1,
    waiting: 0,
    utilization: 0.5,
    holders: [{ ...holder, ...(expires ? { expires_at: expires } : {}) }],
  } as Schemas["AdminLock"];
}

function row(of: Schemas["AdminLock"], gone = false): Element {
  const { container } = render(
    <table>
      <tbody>
        <Row lock={of} gone={gone} />
      </tbody>
    </table>,
  );
  return container;
}

it("shows how much of a lease is left as a bar, where that is known", () => {
  const held = row(lock("2026-01-02T15:04:15.000Z"));
  expect(held.querySelector(".lease")?.textContent).toBe("15 s left");
  expect(held.querySelector<HTMLElement>(".bar > i")?.style.transform).toBe("scaleX(0.5)");
  expect(row(lock()).querySelector(".lease")?.textContent).toBe("–");
});

it("counts no time of a lock that has left the page", () => {
  const gone = row(lock("2026-01-02T15:04:15.000Z"), true);
  expect(gone.textContent).toContain("no longer in use");
  expect(gone.querySelector("time, .bar")).toBeNull();
});
