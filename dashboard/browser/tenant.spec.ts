import { expect } from "@playwright/test";
import { test } from "./fixture";
import { attack, enter, to, unhurt, violations } from "./world";

test("limits are seen with what is used, and set with a reason", async ({ page, server }) => {
  const small = server.tokenOf("small", "tenant-admin locks:write");
  await server.acquire("small:1", { ttl_seconds: 120 }, small);
  await enter(server, page);
  await to(server, page, "tenants");
  await page.getByRole("link", { name: "small", exact: true }).click();
  const held = page.getByRole("row", { name: /^Held/ });
  await expect(held).toContainText("1 of 200,000 locks");
  await page.getByRole("button", { name: "Set quota" }).click();
  const dialog = page.getByRole("dialog");
  const confirm = dialog.getByRole("button", { name: "Set quota" });
  await dialog.getByLabel("Reason").fill(`a trial ${attack}`);
  await dialog.getByLabel(/^Held/).fill("many");
  await expect(dialog).toContainText("Held locks: enter a whole number from 0 to 10,000,000.");
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(/^Held/).fill("1");
  await dialog.getByText("The same with curl").click();
  await expect(dialog.locator("pre")).toContainText("-X PUT");
  await expect(dialog.locator("pre")).toContainText('{"held_locks":1,"reason":"a trial');
  expect(await violations(page)).toEqual([]);
  await confirm.click();
  await expect(dialog).toBeHidden();
  await expect(held).toContainText("1 of 1 locks");
  await expect(held).toContainText("set to 1");
  await expect(page.getByText("<img src=x")).toBeVisible();
  await unhurt(page);
  await expect(async () => {
    expect((await server.acquire("small:2", { ttl_seconds: 2 }, small)).status).toBe(429);
  }).toPass();

  // Who looked before another set them is refused, and nothing of the other's is lost.
  await page.getByRole("button", { name: "Set quota" }).click();
  await server.request("PUT", "/admin/tenants/small/quota", { held_locks: 2, reason: "meanwhile another" });
  await dialog.getByLabel("Reason").fill("what I wanted to set");
  await confirm.click();
  await expect(dialog.getByRole("alert")).toContainText("the quota has changed meanwhile");
  await page.keyboard.press("Escape");
  await expect(held).toContainText("set to 2");

  // Back to the defaults, by the keyboard.
  await page.getByRole("button", { name: "Reset to defaults" }).focus();
  await page.keyboard.press("Enter");
  await dialog.getByText("The same with curl").click();
  await expect(dialog.locator("pre")).toContainText("-X DELETE");
  await expect(dialog.locator("pre")).toContainText("/admin/tenants/small/quota");
  await expect(dialog.getByRole("row", { name: /^Held/ })).toContainText("200,000");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Reset to defaults" }).press("Enter");
  await expect(dialog).toBeHidden();
  await expect(held).toContainText("of 200,000 locks");
  await expect(page.getByRole("button", { name: "Reset to defaults" })).toHaveCount(0);
});

test("a tenant's own operator reads its limits, and sets none", async ({ page, server }) => {
  await enter(server, page, server.tokenOf("modest", "tenant-admin"));
  await to(server, page, "tenants/modest");
  await expect(page.getByRole("row", { name: /^Held/ })).toContainText("0 of 200,000 locks");
  await expect(page.getByRole("button", { name: "Set quota" })).toHaveCount(0);
  await to(server, page, "tenants/demo");
  await expect(page.getByRole("alert")).toContainText("own tenant");
});
