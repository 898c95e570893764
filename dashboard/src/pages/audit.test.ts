import { expect, it } from "vitest";
import { limitsInWords, webhookInWords } from "./audit";
import { filterOf, queryOf } from "./audit-filter";

it("reads the address, and looks back from now", () => {
  const f = filterOf(new URLSearchParams("tenant=acme&since=day&cursor=abc&other=1&lock=a"));
  expect(f).toEqual({ tenant: "acme", lock: "a", span: "day", cursor: "abc" });
  expect(queryOf(f, Date.parse("2026-01-02T15:04:05.678Z"))).toEqual({
    tenant: "acme",
    lock: "a",
    since: "2026-01-01T15:04:05Z",
  });
  expect(filterOf(new URLSearchParams("since=toString&tenant="))).toEqual({});
  expect(queryOf({}, 0)).toEqual({});
});

it("says which limits were set", () => {
  expect(limitsInWords({ held_locks: 1000, webhooks: 3 })).toBe("Held locks: 1,000, Webhooks: 3");
  expect(limitsInWords({})).toBe("all defaults");
});

it("says what was done to a webhook", () => {
  const hook = { id: "w1", receiver: "https://example.org" };
  expect(webhookInWords({ ...hook, delivery: "1042-1" })).toBe("delivery 1042-1");
  expect(webhookInWords({ ...hook, since: "2026-01-02T15:04:05.000Z" })).toBe(
    "all events since 2026-01-02T15:04:05.000Z",
  );
  expect(webhookInWords({ ...hook, changed: ["url", "locks"] })).toBe("url, locks");
  expect(webhookInWords(hook)).toBe("");
});
