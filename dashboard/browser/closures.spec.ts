import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import type { Server } from "./server";
import { attack, enter, to, unhurt, violations } from "./world";

/** Signs in as an operator of a tenant, in which a client holds a lock and another waits for it. */
async function begin(server: Server, page: Page, tenant: string) {
  const token = server.tokenOf(tenant, "tenant-admin locks:write");
  const held = await server.acquire("stock:1", { holder: "first", ttl_seconds: 120 }, token);
  await server.acquire("stock:1", { holder: "next", ttl_seconds: 60, wait_seconds: 60, async: true }, token);
  await enter(server, page, token);
  await to(server, page, "closures");
  return { token, held };
}

test("locks are closed with a reason, are seen to be, and are opened again", async ({ page, server }) => {
  const { token, held } = await begin(server, page, "shop");
  await expect(page.getByText("No closed locks")).toBeVisible();
  await page.getByRole("button", { name: "Close locks" }).click();
  const dialog = page.getByRole("dialog");
  const confirm = dialog.getByRole("button", { name: "Close locks" });
  await expect(dialog).toContainText("Waiters acquire the lock in order");
  await dialog.getByLabel("Locks").fill("stock:*");
  await expect(dialog.getByRole("status")).toContainText("1 lock in use, 1 request waiting");
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel("Reason").fill(`counted ${attack}`);
  await dialog.getByLabel("Description").fill(`OPS-311 ${attack}`);
  await dialog.getByLabel("Locks").fill("stock *");
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel("Locks").fill("stock:*");
  await dialog.getByText("The same with curl").click();
  await expect(dialog.locator("pre")).toContainText('{"tenant":"shop","locks":"stock:*","until":"20');
  expect(await violations(page)).toEqual([]);
  await confirm.click();
  await expect(dialog.getByRole("status")).toContainText("stock:* of shop");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(page.getByRole("row", { name: "stock:*" })).toContainText("<img src=x");
  await unhurt(page);

  expect((await server.acquire("stock:2", {}, token)).status).toBe(423);
  await to(server, page, "locks");
  await expect(page.getByRole("row", { name: "stock:1" })).toContainText("closed");
  await to(server, page, "");
  await expect(page.getByRole("row", { name: "stock:1" })).toContainText("closed");
  await server.release("stock:1", held.token, token);

  await to(server, page, "closures");
  await page.getByRole("button", { name: "Open stock:*" }).click();
  await expect(dialog).toContainText("<img src=x");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Open now" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText("No closed locks")).toBeVisible();
  await to(server, page, "locks/shop/stock%3A1");
  await expect(page.getByRole("heading", { name: "next" })).toBeVisible();
});

test("from a lock's page it is closed alone, and an unknown outcome is told as one", async ({ page, server }) => {
  await begin(server, page, "depot");
  await to(server, page, "locks/depot/stock%3A1");
  await page.getByRole("button", { name: "Close lock…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Locks")).toHaveValue("stock:1");
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(page.getByRole("heading", { name: "stock:1" })).toBeVisible();
  await page.getByRole("button", { name: "Close lock…" }).click();
  await expect(dialog.getByLabel("Locks")).toHaveValue("stock:1");
  await dialog.getByLabel("Reason").fill("its table is rewritten");
  // The server does it, and its answer is lost.
  await page.route("**/admin/closures", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    return route.abort();
  });
  await dialog.getByRole("button", { name: "Close locks" }).click();
  await expect(dialog).toContainText("The closure may exist");
  await dialog.getByRole("link", { name: "list" }).click();
  await expect(page.getByRole("row", { name: "stock:1" })).toContainText("its table is rewritten");
});
