import { expect, it } from "vitest";
import { fieldsOf, overridesIn } from "./limits";

it("names the limits that differ from the defaults, and no others", () => {
  expect(overridesIn({ held_locks: " 1000 ", waiting: "", sets: "0" })).toEqual({ held_locks: 1000, sets: 0 });
  expect(overridesIn({})).toEqual({});
  expect(overridesIn(fieldsOf({ webhooks: 3 }))).toEqual({ webhooks: 3 });
  for (const text of ["-1", "1.5", "1e3", "many", "12345678901"]) expect(overridesIn({ places: text })).toBeUndefined();
});
