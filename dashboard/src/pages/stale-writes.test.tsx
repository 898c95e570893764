import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { StaleWrites } from "./stale-writes";

afterEach(cleanup);

it("shows how late a holder was and which TTL is enough, and only the fences if nothing else is known", () => {
  const fences = { fence_presented: 33, fence_known: 34, resource: "db", at: "2026-01-02T15:04:05.000Z" };
  const known = { ...fences, holder: "worker-7", ended: "expired", late_seconds: 4.2, enough_ttl_seconds: 35 };
  const { container } = render(<StaleWrites all={[known, fences]} />);
  const [first, second] = [...container.querySelectorAll("tbody tr")].map((row) =>
    [...row.querySelectorAll("td")].slice(1).map((cell) => cell.textContent),
  );
  expect(first).toEqual(["dbhad seen fence 34", "worker-7wrote with fence 33", "4.2 safter its hold expired", "35 s"]);
  expect(second).toEqual(["dbhad seen fence 34", "unknownwrote with fence 33", "–", "–"]);
});
