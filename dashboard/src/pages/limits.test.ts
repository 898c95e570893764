import { expect, it } from "vitest";
import openapi from "../../../openapi/openapi.json";
import { fieldsOf, limits, overridesIn, wrongIn } from "./limits";

it("names the limits that differ from the defaults, and no others", () => {
  expect(overridesIn({ held_locks: " 1000 ", waiting: "", sets: "0" })).toEqual({ held_locks: 1000, sets: 0 });
  expect(overridesIn({})).toEqual({});
  expect(overridesIn(fieldsOf({ webhooks: 3 }))).toEqual({ webhooks: 3 });
  for (const text of ["-1", "1.5", "1e3", "many", "12345678901"]) expect(overridesIn({ places: text })).toBeUndefined();
});

it("says both bounds of a limit that is none", () => {
  expect(wrongIn({ held_locks: "99999999999" })).toBe("Held locks: enter a whole number from 0 to 10,000,000.");
  expect(wrongIn({ held_locks: "10000000", webhooks: "1001" })).toContain(
    "Webhooks: enter a whole number from 0 to 1,000",
  );
  expect(wrongIn({ held_locks: "10000000", webhooks: " 0 ", sets: "" })).toBeUndefined();
});

it("has the bounds that the server has", () => {
  const { properties } = openapi.components.schemas.QuotaOverrides;
  expect(Object.fromEntries(limits.map((l) => [l.key, l.most]))).toEqual(
    Object.fromEntries(Object.entries(properties).map(([key, p]) => [key, p.maximum])),
  );
});
