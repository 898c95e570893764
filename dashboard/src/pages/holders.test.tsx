import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { Row } from "./holders";

afterEach(cleanup);

it("shows a request for any of a pool as one row, with its position at each lock", () => {
  const of = {
    id: "e",
    fence: 7,
    state: "waiting",
    enqueued_at: "2026-01-02T15:03:00.000Z",
    ttl_seconds: 30,
    set: 2,
    any: 1,
    named: true,
    locks: [
      { name: "gpu:0", mode: "exclusive", state: "waiting", position: 1 },
      { name: "gpu:1", mode: "exclusive", state: "waiting", position: 4 },
    ],
  } as Schemas["AdminEntry"];
  const { container } = render(
    <table>
      <tbody>
        <Row of={of} tenant="demo" />
      </tbody>
    </table>,
  );
  expect(container.querySelectorAll("tr")).toHaveLength(1);
  const text = container.textContent?.replace(/\s+/g, " ");
  expect(text).toContain("any 1 of 2");
  expect(text).toContain("gpu:0 position 1");
  expect(text).toContain("gpu:1 position 4");
});
