import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { Row } from "./deliveries";

afterEach(cleanup);

function shown(of: Partial<Schemas["Delivery"]>, still: boolean) {
  const delivery: Schemas["Delivery"] = {
    id: "1042-1",
    type: "lock.acquired",
    state: "pending",
    created_at: "2026-01-02T15:04:05.000Z",
    tried: 1,
    attempts: [],
    ...of,
  };
  const { container } = render(
    <table>
      <tbody>
        <Row of={delivery} still={still} again={async () => {}} />
      </tbody>
    </table>,
  );
  return { text: container.textContent ?? "", button: container.querySelector("button")?.textContent };
}

it("announces no attempt while nothing is sent, and offers none", () => {
  const due = { next_attempt_at: "2126-01-02T15:04:05.000Z" };
  expect(shown(due, false)).toMatchObject({ text: expect.stringContaining("retry in"), button: "Send now" });
  const still = shown(due, true);
  expect(still.text).toContain("when the webhook resumes");
  expect(still.text).not.toContain("again");
  expect(still.button).toBeUndefined();
});

it("lets one ask for what was sent before, also while nothing is sent", () => {
  const still = shown({ state: "delivered" }, true);
  expect(still).toMatchObject({ text: expect.not.stringContaining("resumes"), button: "Send again" });
});
