import { cleanup, fireEvent, render, waitFor } from "@testing-library/preact";
import { afterEach, expect, it, vi } from "vitest";
import type { Schemas } from "../api/client";
import { had } from "./holders";
import { parts, RevokeAll, said } from "./revoke-all";

afterEach(cleanup);

/** What is listed of a holder: so many entries from a number on, and whether there are more. */
function holdings(from: number, n: number, truncated: boolean) {
  const entries = Array.from({ length: n }, (_, i) => ({
    id: `e${from + i}`,
    fence: from + i,
    state: "held",
    locks: [{ name: `l${from + i}` }],
  }));
  const counted = { holding: 2000, waiting: 0 }; // whatever the server counts
  return { tenant: "acme", holder: "bulk-7", entries, truncated, ...counted } as unknown as Schemas["AdminHoldings"];
}

it("says how much a holder has, and that not all of it is listed", () => {
  const more = { ...holdings(1, 200, true), holding: 1300, waiting: 2 };
  expect(had(more)).toBe("holds 1,300, waits for 2; the first 200 are listed");
  expect(had({ ...more, holding: 1998 })).toBe("has 2,000 or more entries; the first 200 are listed");
  expect(had({ ...holdings(1, 3, false), holding: 3, waiting: 0 })).toBe("holds 3, waits for 0");
});

it("says that a part is not everything, and offers the next until nothing is left", async () => {
  vi.stubGlobal("fetch", async (r: Request) => {
    const { entries } = (await r.json()) as Schemas["RevokeHolderBody"];
    return Response.json({ entries: entries.map((e) => ({ ...e, result: "revoked" })) });
  });
  // The replica that is asked has not seen yet that the last one of the first part is gone.
  const left = [holdings(200, 51, false), holdings(251, 0, false)];
  const look = vi.fn(async () => left.shift() ?? holdings(251, 0, false));
  const page = render(<RevokeAll seen={holdings(1, 200, true)} look={look} close={() => {}} done={() => {}} />);
  const text = () => page.container.textContent ?? "";
  const type = (label: RegExp, value: string) => fireEvent.input(page.getByLabelText(label), { target: { value } });
  const submit = () => fireEvent.submit(page.container.querySelector("form") as HTMLFormElement);
  expect(text()).toContain("Revoke the first 200 entries of bulk-7");
  expect(text()).toContain("These are not all. bulk-7 has more than these 200 entries");
  expect(text()).not.toContain("all entries of");
  type(/Reason/, "its node is gone");
  type(/to confirm/, "bulk-7");
  submit();
  await waitFor(() => expect(text()).toContain("bulk-7 had more entries"));
  fireEvent.click(page.getByText("Show the others…"));
  await waitFor(() => expect(text()).toContain("Revoke all entries of bulk-7"));
  expect(text()).toContain("50 held and 0 waiting entries of acme");
  expect(text()).not.toContain("not all");
  submit();
  await waitFor(() => expect(page.container.querySelector("input")).toBeNull());
  expect(text()).not.toContain("had more entries");
  expect(look).toHaveBeenCalledOnce();
});

it("names every entry once, a hundred in a request", () => {
  const entries = Array.from({ length: 150 }, (_, i) => ({ id: `e${i}`, fence: i + 1, state: "held" }));
  const seen = { tenant: "acme", holder: "w", entries } as unknown as Schemas["AdminHoldings"];
  const bodies = parts(seen, "its node is gone");
  expect(bodies.map((b) => b.entries.length)).toEqual([100, 50]);
  expect(bodies.flatMap((b) => b.entries)).toEqual(entries.map(({ id, fence }) => ({ id, fence })));
  expect(bodies[1]).toMatchObject({ tenant: "acme", holder: "w", reason: "its node is gone" });
});

it("says of each what came of it", () => {
  const of = (more: object) => said({ id: "e", fence: 1, result: "", ...more } as Schemas["RevokeOutcome"]);
  expect(of({ result: "lock_lost", reason: "released" })).toBe("gone: its client released it");
  expect(of({ result: "changed" })).toContain("has changed");
  expect(of({ result: "not_tried" })).toContain("try again");
  expect(of({ result: "store_unavailable", may_have_taken_effect: true })).toContain("outcome unknown");
  expect(of({ result: "rate_limited" })).toBe("not revoked: rate_limited");
});
