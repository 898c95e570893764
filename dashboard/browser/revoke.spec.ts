import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import type { Server } from "./server";
import { attack, enter, to, unhurt, violations } from "./world";

/** Opens the page of a lock, and there the dialog of a holder or waiter. */
async function ask(server: Server, page: Page, lock: string, holder: string) {
  await to(server, page, `locks/demo/${encodeURIComponent(lock)}`);
  await page.getByRole("button", { name: `Revoke ${holder}` }).click();
  return page.getByRole("dialog");
}

async function fill(page: Page, lock: string, reason = "its node was lost in the fire"): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByLabel(`Type ${lock} to confirm`).fill(lock);
}

const confirm = (page: Page) => page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true });

test("who holds is revoked with a reason and the lock's name, and the next one holds", async ({ page, server }) => {
  const held = await server.acquire("stuck:1", { holder: "stuck", ttl_seconds: 120 });
  const next = server.acquire("stuck:1", { holder: "patient", ttl_seconds: 120, wait_seconds: 45 });
  await enter(server, page);
  const dialog = await ask(server, page, "stuck:1", "stuck");
  await expect(dialog).toContainText(`Fence${held.fence}`);
  await expect(dialog).toContainText("Granted next: patient");
  await expect(dialog).toContainText("stuck may still be writing");
  await expect(confirm(page)).toBeDisabled();
  await fill(page, "stuck:1", "too short");
  await expect(confirm(page)).toBeDisabled();
  await dialog.getByLabel("Reason").fill("  it's gone in the fire ");
  await dialog.getByLabel("Type stuck:1").fill("stuck:2");
  await expect(confirm(page)).toBeDisabled();
  await dialog.getByText("The same with curl").click();
  await expect(dialog.locator("pre")).toContainText("$FENCEPOST_TOKEN");
  await expect(dialog.locator("pre")).toContainText(`"fence":${held.fence},"reason":"it'\\''s gone in the fire"`);
  expect(await violations(page)).toEqual([]);
  await dialog.getByLabel("Type stuck:1").fill("stuck:1");
  await confirm(page).click();
  await expect(dialog.getByRole("status")).toContainText("Revoked");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(page.getByRole("heading", { name: "patient" })).toBeVisible();
  expect((await next).status).toBe(201);
  expect(await server.renew("stuck:1", held.token)).toMatchObject({ status: 410, reason: "revoked" });
  await server.release("stuck:1", (await next).token);
});

test("what is not as it was seen is not revoked, and the page says why", async ({ page, server }) => {
  const held = await server.acquire("moved:1", { holder: "quick", ttl_seconds: 120 });
  await enter(server, page);
  const dialog = await ask(server, page, "moved:1", "quick");
  await fill(page, "moved:1");
  // An entry keeps its fence for life: an operator who saw another is one of a fence before.
  await page.route("**/revoke", (route) =>
    route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), fence: held.fence - 1 }) }),
  );
  await confirm(page).click();
  await expect(dialog.getByRole("alert")).toContainText("another fence than this dialog shows");
  expect((await server.renew("moved:1", held.token)).status).toBe(200);
  await page.unroute("**/revoke");
  await server.release("moved:1", held.token);
  await expect(dialog.getByText("has left this lock")).toBeVisible();
  await expect(confirm(page)).toHaveCount(0);
  await expect(dialog.getByRole("button", { name: "Close" }).last()).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(page.locator("#main")).toBeFocused();
});

test("a set is revoked as a whole, and one who waits loses its place", async ({ page, server }) => {
  const locks = [{ name: "pair:a" }, { name: "pair:b" }];
  const set = await server.post("/locksets", { locks, holder: "mover", ttl_seconds: 120 });
  expect(set.status).toBe(201);
  const waiter = server.acquire("pair:b", { holder: "behind", ttl_seconds: 60, wait_seconds: 45 });
  await enter(server, page);
  await ask(server, page, "pair:b", "behind");
  await fill(page, "pair:b");
  await confirm(page).click();
  await expect(page.getByRole("dialog").getByRole("status")).toContainText("behind waited for pair:b");
  expect(await waiter).toMatchObject({ status: 410, reason: "revoked" });
  await page.keyboard.press("Escape");
  const dialog = await ask(server, page, "pair:b", "mover");
  await expect(dialog).toContainText("all of them");
  await fill(page, "pair:b");
  await confirm(page).click();
  await expect(dialog.getByRole("status")).toContainText("pair:a, pair:b");
  const again = await server.acquire("pair:a", { holder: "new", ttl_seconds: 30 });
  expect(again.status).toBe(201);
  await server.release("pair:a", again.token);
});

test("an unknown outcome is told as one, and asking again is safe", async ({ page, server }) => {
  await server.acquire("lost:1", { holder: "w", ttl_seconds: 120 });
  await enter(server, page);
  const dialog = await ask(server, page, "lost:1", "w");
  await fill(page, "lost:1");
  // The server does it, and its answer is lost.
  await page.route("**/revoke", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await confirm(page).click();
  await expect(dialog.getByRole("alert")).toContainText("may be revoked");
  await page.unroute("**/revoke");
  await confirm(page).click();
  await expect(dialog.getByRole("alert")).toContainText("an operator revoked it");
});

test("names and reasons in the dialog are text, whatever stands in them", async ({ page, server }) => {
  await server.acquire("xss:2", { holder: attack, ttl_seconds: 120 });
  await enter(server, page);
  const dialog = await ask(server, page, "xss:2", attack.slice(0, 20));
  await fill(page, "xss:2", attack);
  await expect(dialog).toContainText("<img src=x");
  await confirm(page).click();
  await expect(dialog.getByRole("status")).toContainText("<img src=x");
  await unhurt(page);
});

test("a tenant's operator revokes what is its own, and nothing else", async ({ page, server }) => {
  const theirs = await server.acquire("iso:1", { holder: "demo-worker", ttl_seconds: 120 });
  const acme = server.tokenOf("acme", "tenant-admin locks:write");
  const mine = await server.acquire("iso:1", { holder: "acme-worker", ttl_seconds: 120 }, acme);
  await enter(server, page, acme);
  await to(server, page, "locks/acme/iso%3A1");
  await page.getByRole("button", { name: "Revoke acme-worker" }).click();
  await fill(page, "iso:1");
  // A page that was made to name another tenant gets nowhere.
  await page.route("**/revoke", (route) =>
    route.continue({
      url: route.request().url().replace("/acme/", "/demo/").replace(mine.id, theirs.id),
      postData: JSON.stringify({ ...route.request().postDataJSON(), fence: theirs.fence }),
    }),
  );
  await confirm(page).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toContainText("own tenant");
  await page.unroute("**/revoke");
  await confirm(page).click();
  await expect(page.getByRole("dialog").getByRole("status")).toContainText("acme-worker");
  expect((await server.renew("iso:1", theirs.token)).status).toBe(200);
  await server.release("iso:1", theirs.token);
});

test("a closed lock shows why, and its waiter is next", async ({ page, server }) => {
  await server.acquire("shut:1", { holder: "last", ttl_seconds: 120 });
  await server.acquire("shut:1", { holder: "w", ttl_seconds: 60, wait_seconds: 60, async: true });
  const until = new Date(Date.now() + 600_000).toISOString();
  const closure = await server.post("/admin/closures", {
    tenant: "demo",
    locks: "shut:*",
    until,
    reason: `moves ${attack}`,
  });
  expect(closure.status).toBe(201);
  await enter(server, page);
  const dialog = await ask(server, page, "shut:1", "last");
  await expect(dialog).toContainText("Granted next: w");
  await expect(page.getByText("It rejects new requests and opens")).toContainText("<img src=x");
  await unhurt(page);
  expect(await violations(page)).toEqual([]);
});
