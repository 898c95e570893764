import { readFileSync } from "node:fs";
import { expect } from "@playwright/test";
import { test } from "./fixture";
import { attack, enter, to, unhurt, violations } from "./world";

test("who did what is there, with why, in pages, and as a file", async ({ page, server }) => {
  const reason = `the ${attack} of rack 7`;
  const rack = server.tokenOf("rack", "tenant-admin locks:write");
  for (let i = 0; i < 55; i++) await server.revoke(`rack:${i}`, reason, rack, "rack");
  await enter(server, page);
  await to(server, page, "audit?tenant=rack");
  const rows = page.getByRole("table").locator("tbody tr");
  await expect(rows).toHaveCount(50);
  await expect(rows.nth(0)).toContainText("rack:54");
  await expect(rows.nth(0)).toContainText("127.0.0.1");
  await expect(rows.nth(0)).toContainText("<img src=x");
  await unhurt(page);
  await page.getByRole("button", { name: "Earlier" }).click();
  await expect(rows).toHaveCount(5);
  await expect(rows.nth(4)).toContainText("rack:0");
  await page.goBack();
  await expect(rows).toHaveCount(50);

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  const lines = readFileSync(await (await download).path(), "utf8")
    .trimEnd()
    .split("\n");
  expect(lines).toHaveLength(55);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ reason, object: { locks: ["rack:54"] } });

  await server.revoke("rack:live", "while somebody looks", rack, "rack");
  await expect(rows.nth(0)).toContainText("rack:live");
  await rows.nth(0).getByRole("link").click();
  await expect(page.getByRole("heading", { name: "rack:live" })).toBeVisible();
});

test("an export that breaks off leaves no file, and says so", async ({ page, server }) => {
  await server.revoke("cut:1", "so that there is something");
  await enter(server, page);
  await to(server, page, "audit");
  await expect(page.getByText("cut:1")).toBeVisible();
  let saved = 0;
  page.on("download", () => saved++);
  await page.route("**/admin/audit*", (route) =>
    route.request().headers().accept === "application/x-ndjson" ? route.abort() : route.continue(),
  );
  await page.getByRole("button", { name: "Export" }).click();
  await expect(page.getByRole("alert").first()).toBeVisible();
  expect(saved).toBe(0);
});

test("a tenant's operator reads what is about that tenant alone", async ({ page, server }) => {
  const acme = server.tokenOf("acme", "tenant-admin locks:write");
  await server.revoke("secret:1", "not for the others to know");
  await server.revoke("mine:1", "for us to know", acme, "acme");
  await enter(server, page, acme);
  await to(server, page, "audit?since=hour");
  await expect(page.getByText("mine:1")).toBeVisible();
  await expect(page.getByText("secret:1")).toHaveCount(0);
  await expect(page.getByLabel("Tenant")).toHaveCount(0);
  await to(server, page, "audit?tenant=demo");
  await expect(page.getByRole("alert")).toContainText("own tenant");
});

test("records are found by operator, action and lock, on all pages, with the time of each", async ({
  page,
  server,
}) => {
  const find = server.tokenOf("find", "tenant-admin locks:write");
  await server.revoke("find:needle", "the needle in the haystack", find, "find");
  for (let i = 0; i < 51; i++) await server.revoke(`find:${i}`, "one of the haystack", find, "find");
  await enter(server, page);
  await to(server, page, "audit?tenant=find");
  const rows = page.getByRole("table").locator("tbody tr");
  await expect(rows).toHaveCount(50);
  await expect(page.getByText("find:needle")).toHaveCount(0); // it is on the next page
  await page.getByRole("searchbox", { name: "Lock" }).fill("find:needle");
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText("the needle in the haystack");
  await expect(rows).toContainText(/20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
  await page.getByRole("combobox", { name: "Action" }).selectOption("Closed locks");
  await expect(page.getByText("No record matches the filters above.")).toBeVisible();
  await page.getByRole("combobox", { name: "Action" }).selectOption("Revoked");
  await expect(rows).toHaveCount(1);
  await page.getByRole("searchbox", { name: "Operator" }).fill("nobody");
  await expect(page.getByText("No records")).toBeVisible();
  await page.getByRole("searchbox", { name: "Operator" }).fill("CLI");
  await expect(rows).toHaveCount(1);
  await expect(page).toHaveURL(/operator=CLI&?/);
  expect(await violations(page)).toEqual([]);
});
