import { expect, it } from "vitest";
import { Picture, type Told } from "./picture";

const seen = { revision: 1, server_now: "now", replica: "r" };
const told = (more: Partial<Told>): Told => ({ ...seen, ...more });

function begun(): Picture {
  const p = new Picture("locks");
  const answer = { ...seen, matching: 2, locks: [{ n: 1 }, { n: 2 }] };
  expect(p.take("snapshot", told({ answer, order: ["t/a", "t/b"] }))).toEqual(answer);
  return p;
}

it("changes the rows that are other, and leaves the others", () => {
  const p = begun();
  expect(p.take("delta", told({ revision: 5, rows: { "t/b": { n: 3 } } }))).toEqual({
    ...seen,
    revision: 5,
    matching: 2,
    locks: [{ n: 1 }, { n: 3 }],
  });
});

it("takes over another order, new rows, and forgets those that are gone", () => {
  const p = begun();
  const rows = { "t/c": { n: 4 } };
  expect(p.take("delta", told({ rows, order: ["t/c", "t/b"], page: { matching: 9 } }))).toMatchObject({
    matching: 9,
    locks: [{ n: 4 }, { n: 2 }],
  });
  expect(() => p.take("delta", told({ order: ["t/a"] }))).toThrow("does not fit");
});

it("is empty when the last row has gone", () => {
  expect(begun().take("delta", told({ order: [] }))).toMatchObject({ locks: [] });
});

it("wants everything first, and knows answers without rows", () => {
  expect(() => new Picture("locks").take("delta", told({ rows: {} }))).toThrow("does not fit");
  const p = new Picture();
  p.take("snapshot", told({ answer: { ...seen, held: 1, waiting: 2 }, order: [] }));
  expect(p.take("delta", told({ page: { held: 2 } }))).toEqual({ ...seen, held: 2 });
});

it("says that the store is out of sight for as long as the last message does", () => {
  const p = new Picture("locks");
  const seen = { revision: 1, server_now: "", replica: "r" };
  const lost = { store_lost_since: "2026-01-02T15:04:05.000Z" };
  expect(p.take("snapshot", { ...seen, ...lost, order: [], answer: { ...seen, ...lost, locks: [] } })).toMatchObject(
    lost,
  );
  expect(p.take("delta", seen)).not.toHaveProperty("store_lost_since");
  expect(p.take("delta", { ...seen, ...lost })).toMatchObject(lost);
});
