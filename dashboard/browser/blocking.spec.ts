import { expect } from "@playwright/test";
import { test } from "./fixture";
import { attack, enter, to, unhurt, violations } from "./world";

test("who is in everybody's way is on top, those behind it below, and there it is revoked", async ({
  page,
  server,
}) => {
  const links = server.tokenOf("links", "tenant-admin locks:write");
  const acquire = (name: string, holder: string, wait = 0) =>
    server.acquire(name, { holder, ttl_seconds: 300, wait_seconds: wait }, links);
  const held = await acquire("chain:a", "root");
  const other = await acquire("chain:b", "middle");
  expect([held.status, other.status]).toEqual([201, 201]);
  const middle = acquire("chain:a", "middle", 45);
  const leaf = acquire("chain:b", attack, 45);
  await enter(server, page, links);
  await to(server, page, "");
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  const tree = page.getByRole("region", { name: "Blocked by root" });
  await expect(tree).toContainText("2 wait");
  await expect(tree).toContainText("total time blocked by this holder");
  const below = tree.locator(".tree > ul > li");
  await expect(below).toHaveCount(1);
  await expect(below).toContainText("middle");
  await expect(below.locator("li")).toContainText("<img src=x");
  await unhurt(page);

  await tree.getByRole("link", { name: "root" }).click();
  await expect(page.getByText("holds 1, waits for 0")).toBeVisible();
  const late = await acquire("chain:c", "root");
  await expect(page.getByText("holds 2, waits for 0")).toBeVisible();
  await page.getByRole("button", { name: "Revoke all" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("chain:a");
  // What is given back and what is taken while the dialog is open is no longer what it names.
  await server.release("chain:c", late.token, links);
  const after = await acquire("chain:d", "root");
  await dialog.getByLabel("Reason").fill("its node was lost in the fire");
  await dialog.getByLabel("Type root").fill("roo");
  await expect(dialog.getByRole("button", { name: "Revoke 2 entries" })).toBeDisabled();
  await dialog.getByLabel("Type root").fill("root");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Revoke 2 entries" }).click();
  await expect(dialog.getByRole("row", { name: "chain:a" })).toContainText("revoked");
  await expect(dialog.getByRole("row", { name: "chain:c" })).toContainText("released it");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(page.getByText("holds 1, waits for 0")).toBeVisible();
  expect((await server.renew("chain:d", after.token, links)).status).toBe(200);
  expect((await middle).status).toBe(201);
  await server.release("chain:a", (await middle).token, links);
  await server.release("chain:b", other.token, links);
  await server.release("chain:b", (await leaf).token, links);
  await to(server, page, "blocking");
  await expect(page.getByText("No waiters")).toBeVisible();
});

test("a tenant's operator sees who blocks whom in that tenant alone", async ({ page, server }) => {
  const acme = server.tokenOf("acme", "tenant-admin locks:write");
  await server.acquire("own:1", { holder: "own", ttl_seconds: 300 }, acme);
  await server.acquire("foreign:1", { holder: "foreign", ttl_seconds: 300 });
  // The server keeps their places: no request waits when the test ends.
  const waiting = { holder: "w", ttl_seconds: 60, wait_seconds: 60, async: true };
  await server.acquire("own:1", waiting, acme);
  await server.acquire("foreign:1", waiting);
  await enter(server, page, acme);
  await to(server, page, "blocking");
  await expect(page.getByRole("region", { name: "Blocked by own" })).toBeVisible();
  await expect(page.getByText("foreign")).toHaveCount(0);
  await to(server, page, "holders");
  const blamed = page.getByRole("region", { name: "Top blockers" });
  await expect(blamed.getByRole("row")).toHaveCount(2);
  await blamed.getByRole("link", { name: "own", exact: true }).click();
  await expect(page.getByRole("heading", { name: "own" })).toBeVisible();
  await to(server, page, "holders?holder=foreign&tenant=demo");
  await expect(page.getByRole("alert")).toContainText("own tenant");
});

test("a holder that hangs comes before a longer queue whose holders change, and both are called so", async ({
  page,
  server,
}) => {
  const pace = server.tokenOf("pace", "tenant-admin locks:write");
  const waits = { ttl_seconds: 300, wait_seconds: 300 };
  const held = await server.acquire("pace:stuck", { holder: "stuck", ttl_seconds: 300 }, pace);
  await server.acquire("pace:stuck", { holder: "patient", ...waits, async: true }, pace);
  let over = false;
  const workers = ["w1", "w2", "w3", "w4", "w5"].map(async (holder) => {
    while (!over) {
      const mine = await server.acquire("pace:busy", { holder, ...waits }, pace);
      await new Promise((resolve) => setTimeout(resolve, 100)); // its work
      await server.release("pace:busy", mine.token, pace);
    }
  });
  await enter(server, page, pace);
  await to(server, page, "blocking");
  const trees = page.getByRole("region", { name: /^Blocked by/ });
  await expect(trees.first()).toContainText("holder hangs");
  await expect(trees.first()).toContainText(/pace:stuck.*Same holder for \d+ s.*The queue does not move/);
  await expect(trees.nth(1)).toContainText(/busy queue.*pace:busy.*Holders change.*The queue moves/);
  expect(await violations(page)).toEqual([]);
  await to(server, page, "");
  const rows = page.getByRole("table", { name: "Most contended locks" }).locator("tbody tr");
  await expect(rows.first()).toContainText(/pace:stuck.*holder hangs/);
  await expect(rows.nth(1)).toContainText(/pace:busy.*busy queue/);
  await expect(rows.nth(1)).toContainText(/usually up to .* ms/);
  over = true;
  await server.release("pace:stuck", held.token, pace);
  await Promise.all(workers);
});

test("a holder is revoked where it blocks, and if it has left, the lock is closed instead", async ({
  page,
  server,
}) => {
  const spot = server.tokenOf("spot", "tenant-admin locks:write");
  const waits = { ttl_seconds: 60, wait_seconds: 60, async: true };
  const held = await server.acquire("spot:1", { holder: "stuck", ttl_seconds: 300 }, spot);
  for (const holder of ["next", "last"]) await server.acquire("spot:1", { holder, ...waits }, spot);
  await enter(server, page, spot);
  await to(server, page, "blocking");
  await page.getByRole("button", { name: "Revoke stuck at spot:1" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(`Fence${held.fence}`);
  await dialog.getByLabel("Reason").fill("its node was lost in the fire");
  await dialog.getByLabel("Type spot:1 to confirm").fill("spot:1");
  await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
  await expect(dialog.getByRole("status")).toContainText("Revoked");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  expect((await server.renew("spot:1", held.token, spot)).status).toBe(410);

  await page.getByRole("button", { name: "Revoke next at spot:1" }).click();
  await expect(dialog).toContainText("Granted next: last");
  const seen = await page.request.get(`${server.url}/admin/locks/spot/spot:1`);
  const { id, fence } = (await seen.json()).holders[0];
  const path = `/admin/locks/spot/spot:1/entries/${id}/revoke`;
  await server.post(path, { fence, reason: "another operator was faster" }, spot);
  await expect(dialog).toContainText("There is nothing to revoke.");
  await dialog.getByRole("button", { name: "Close lock…" }).click();
  await expect(page.getByRole("dialog", { name: "Close locks" }).getByLabel("Locks")).toHaveValue("spot:1");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("holders are listed before a name is entered, the longest hold first", async ({ page, server }) => {
  const list = server.tokenOf("list", "tenant-admin locks:write");
  for (const holder of ["early", "middle", "late"]) {
    await server.acquire(`list:${holder}`, { holder, ttl_seconds: 300 }, list);
  }
  await enter(server, page);
  await to(server, page, "holders?tenant=list");
  const rows = page.getByRole("table", { name: "Holders, the longest hold first" }).locator("tbody tr");
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText("earlylist");
  await expect(rows.nth(2)).toContainText("latelist");
  await expect(rows.nth(2)).not.toContainText("held for"); // the head of the column has it
  expect(await violations(page)).toEqual([]);
  await rows.nth(1).getByRole("link", { name: "middle", exact: true }).click();
  await expect(page.getByText("holds 1, waits for 0")).toBeVisible();
  await to(server, page, "holders?tenant=void");
  await expect(page.getByText("No holders")).toBeVisible();
});
