import { expect, it } from "vitest";
import { base } from "../api/client";
import { curl } from "./curl";

it("names the token by its variable, and quotes what is said", () => {
  expect(curl("GET", "/admin/audit")).toBe(`curl -s ${base}/admin/audit -H "Authorization: Bearer $FENCEPOST_TOKEN"`);
  expect(curl("POST", "/admin/x", { reason: "it's $(rm) gone" })).toBe(
    `curl -s -X POST ${base}/admin/x -H "Authorization: Bearer $FENCEPOST_TOKEN" -H 'Content-Type: application/json' ` +
      `-d '{"reason":"it'\\''s $(rm) gone"}'`,
  );
});
