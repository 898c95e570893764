import { expect, test } from "@playwright/test";
import { Server } from "./server";
import { attack, signIn, unhurt, violations } from "./world";

let server: Server;
test.beforeAll(async () => {
  test.setTimeout(300_000);
  server = await Server.start();
});
test.afterAll(() => server?.close());

test("who is in everybody's way is on top, those behind it below, and there it is revoked", async ({ page }) => {
  const held = await server.acquire("chain:a", { holder: "root", ttl_seconds: 300 });
  const other = await server.acquire("chain:b", { holder: "middle", ttl_seconds: 300 });
  expect([held.status, other.status]).toEqual([201, 201]);
  const middle = server.acquire("chain:a", { holder: "middle", ttl_seconds: 300, wait_seconds: 45 });
  const leaf = server.acquire("chain:b", { holder: attack, ttl_seconds: 300, wait_seconds: 45 });
  await signIn(server, page);
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  const tree = page.getByRole("region", { name: "Because of root" });
  await expect(tree).toContainText("2 wait");
  await expect(tree).toContainText("blamed for");
  const below = tree.locator(".tree > ul > li");
  await expect(below).toHaveCount(1);
  await expect(below).toContainText("middle");
  await expect(below.locator("li")).toContainText("<img src=x");
  await unhurt(page);

  await tree.getByRole("link", { name: "root" }).click();
  await expect(page.getByText("holds 1, waits for 0")).toBeVisible();
  const late = await server.acquire("chain:c", { holder: "root", ttl_seconds: 300 });
  await expect(page.getByText("holds 2, waits for 0")).toBeVisible();
  await page.getByRole("button", { name: "Revoke everything" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("chain:a");
  // What is given back and what is taken while the dialog is open is no longer what it names.
  await server.release("chain:c", late.token);
  const after = await server.acquire("chain:d", { holder: "root", ttl_seconds: 300 });
  await dialog.getByLabel("Reason").fill("its node was lost in the fire");
  await dialog.getByLabel("Type root").fill("roo");
  await expect(dialog.getByRole("button", { name: "Revoke 2 entries" })).toBeDisabled();
  await dialog.getByLabel("Type root").fill("root");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Revoke 2 entries" }).click();
  await expect(dialog.getByRole("row", { name: "chain:a" })).toContainText("revoked");
  await expect(dialog.getByRole("row", { name: "chain:c" })).toContainText("given it back");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(page.getByText("holds 1, waits for 0")).toBeVisible();
  expect((await server.renew("chain:d", after.token)).status).toBe(200);
  expect((await middle).status).toBe(201);
  await server.release("chain:a", (await middle).token);
  await server.release("chain:b", other.token);
  await server.release("chain:b", (await leaf).token);
  await page.goto(`${server.url}/dashboard/#/blocking`);
  await expect(page.getByText("Nobody is in anybody's way")).toBeVisible();
});

test("a tenant's operator sees who blocks whom in that tenant alone", async ({ page }) => {
  const acme = server.tokenOf("acme", "tenant-admin locks:write");
  await server.acquire("ours:1", { holder: "ours", ttl_seconds: 300 }, acme);
  await server.acquire("theirs:1", { holder: "theirs", ttl_seconds: 300 });
  // The server keeps their places: no request waits when the test ends.
  const waiting = { holder: "w", ttl_seconds: 60, wait_seconds: 60, async: true };
  await server.acquire("ours:1", waiting, acme);
  await server.acquire("theirs:1", waiting);
  await signIn(server, page, acme);
  await page.goto(`${server.url}/dashboard/#/blocking`);
  await expect(page.getByRole("region", { name: "Because of ours" })).toBeVisible();
  await expect(page.getByText("theirs")).toHaveCount(0);
  await page.goto(`${server.url}/dashboard/#/holders?holder=theirs&tenant=demo`);
  await expect(page.getByRole("alert")).toContainText("own tenant");
});
