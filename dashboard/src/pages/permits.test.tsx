import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { Permits, terms } from "./permits";

afterEach(cleanup);

const view = { permits_held: 7, limits: [5, 10], server_now: "2026-01-02T16:04:05.000Z" };
const marked = (since: string) =>
  render(<Permits view={{ ...view, limits_differ_since: since }} />).container.textContent?.includes("Limits differ");

it("marks a lock whose limits have differed for over an hour", () => {
  expect(render(<Permits view={view} />).container.textContent).toBe("7 permits held of 5 or 10");
  expect(marked("2026-01-02T15:04:05.000Z")).toBe(false);
  expect(marked("2026-01-02T15:04:04.999Z")).toBe(true);
  expect(render(<Permits view={{ server_now: view.server_now }} />).container.textContent).toBe("");
});

it("shows the permits of an entry if it takes several", () => {
  expect(terms({ mode: "semaphore", limit: 10, permits: 3 })).toBe("semaphore of 10, 3 permits");
  expect(terms({ mode: "semaphore", limit: 10, permits: 1 })).toBe("semaphore of 10");
  expect(terms({ mode: "shared" })).toBe("shared");
});
