import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import { enter, themed, to, violations } from "./world";

const ground = (page: Page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

test("a theme that was chosen is there after a reload, and in another tab", async ({ browser, server }) => {
  const page = await themed(browser, "light");
  await enter(server, page);
  await to(server, page, "");
  const light = await ground(page);
  await page.getByLabel("Theme").selectOption("Dark");
  const dark = await ground(page);
  expect(dark).not.toBe(light);
  await page.reload();
  await expect(page.getByLabel("Theme")).toHaveValue("dark");
  expect(await ground(page)).toBe(dark);
  const other = await page.context().newPage();
  await to(server, other, "locks");
  await expect(other.getByLabel("Theme")).toHaveValue("dark");
  await other.close();
  await page.getByLabel("Theme").selectOption("System");
  expect(await ground(page)).toBe(light);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await ground(page)).toBe(dark);
  await page.context().close();
});

test("when something was is told in UTC where the pointer rests", async ({ browser, server }) => {
  const context = await browser.newContext({ timezoneId: "Asia/Tokyo" });
  const page = await context.newPage();
  const east = server.tokenOf("east", "tenant-admin locks:write");
  const before = Date.now();
  await server.acquire("east:1", { holder: "w", ttl_seconds: 120 }, east);
  await server.acquire("east:1", { holder: "v", ttl_seconds: 120, wait_seconds: 120, async: true }, east);
  await enter(server, page, east);
  for (const hash of ["locks", "locks/east/east%3A1", "blocking", ""]) {
    await to(server, page, hash);
    await expect(page.getByText("Loading")).toHaveCount(0);
    await expect(page.locator("#main time:visible").first()).toBeVisible();
    for (const time of await page.locator("#main time").all()) {
      const [said, at] = await time.evaluate((t: HTMLTimeElement) => [t.title, t.dateTime]);
      expect(said).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC$/);
      const told = Date.parse((said ?? "").replace(" UTC", "Z"));
      expect(Math.abs(told - Date.parse(at ?? "")), `${said} of ${at}`).toBeLessThan(1000);
    }
  }
  await to(server, page, "locks/east/east%3A1");
  const lease = await page.locator("[title^=Until]").first().getAttribute("title");
  const until = Date.parse((lease ?? "").replace("Until ", "").replace(" UTC", "Z"));
  expect(until - before).toBeGreaterThan(110_000);
  expect(until - before).toBeLessThan(180_000);
  await context.close();
});

test("j and k go from row to row, Enter opens one, and the first Tab leads past the menu", async ({ page, server }) => {
  const held = [];
  for (const name of ["row:1", "row:2", "row:3"]) held.push(await server.acquire(name, { ttl_seconds: 120 }));
  await enter(server, page);
  await to(server, page, "locks?search=row%3A*&sort=name");
  const row = (n: number) => page.getByRole("link", { name: `row:${n}` });
  await expect(row(3)).toBeVisible();
  for (const [key, n] of [
    ["j", 1],
    ["j", 2],
    ["j", 3],
    ["j", 3], // the last one
    ["k", 2],
  ] as const) {
    await page.keyboard.press(key);
    await expect(row(n)).toBeFocused();
  }
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "row:2" })).toBeVisible();

  await page.reload();
  await expect(page.getByRole("heading", { name: "row:2" })).toBeVisible();
  await page.keyboard.press("Tab");
  const skip = page.getByRole("button", { name: "Skip to content" });
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport({ ratio: 1 });
  const address = page.url();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
  expect(page.url()).toBe(address);
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.closest("#main") !== null)).toBe(true);
  for (const [i, h] of held.entries()) await server.release(`row:${i + 1}`, h.token);
});

test("a page has a title of its own, and the keyboard goes on at its head, or at a search", async ({
  page,
  server,
}) => {
  const held = await server.acquire("titled:1", { ttl_seconds: 120 });
  await enter(server, page);
  await to(server, page, "");
  await expect(page).toHaveTitle("Overview – Fencepost");
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await expect(page).toHaveTitle("Audit – Fencepost");
  await expect(page.getByRole("heading", { name: "Audit" })).toBeFocused();
  await to(server, page, "locks/demo/titled%3A1");
  await expect(page).toHaveTitle("titled:1 – Fencepost");
  await page.keyboard.press("/");
  await expect(page).toHaveTitle("Locks – Fencepost");
  await expect(page.getByLabel("Name")).toBeFocused();
  await server.release("titled:1", held.token);
});

test("a dialog begins with its first field, and says why it does nothing yet", async ({ page, server }) => {
  const held = await server.acquire("asked:1", { holder: "w", ttl_seconds: 120 });
  await enter(server, page);
  await to(server, page, "locks/demo/asked%3A1");
  await page.getByRole("button", { name: /^Revoke w/ }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Reason")).toBeFocused();
  await dialog.getByLabel(/to confirm/).fill("asked:2");
  await expect(dialog).toContainText("The text does not match");
  await dialog.getByLabel(/to confirm/).fill("asked:1");
  await expect(dialog).not.toContainText("The text does not match");
  await dialog.getByLabel("Reason").fill("its node is gone");
  await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
  await expect(dialog).toContainText("The audit has a record.");
  await page.keyboard.press("Escape");
  await server.release("asked:1", held.token);
});

/** Where each dialog is, and what opens it. */
const dialogs: readonly { hash: string; press: RegExp }[] = [
  { hash: "locks/night/night%3A1", press: /^Revoke w/ },
  { hash: "locks/night/night%3A1", press: /^Close/ },
  { hash: "holders?tenant=night&holder=w", press: /^Revoke all/ },
  { hash: "closures", press: /^Close locks/ },
  { hash: "closures", press: /^Open night:shut/ },
  { hash: "tenants/night", press: /^Set quota/ },
  { hash: "tenants/night", press: /^Reset to/ },
];

for (const theme of ["light", "dark"] as const) {
  test(`everybody can use the dialogs: no violation in any, ${theme}`, async ({ browser, server }) => {
    test.setTimeout(300_000); // on a busy machine each look takes ten seconds
    const night = server.tokenOf("night", "locks:write");
    await server.acquire("night:1", { holder: "w", ttl_seconds: 600 }, night);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const shut = { tenant: "night", locks: `night:shut-${theme}`, until, reason: "a trial run" };
    expect((await server.post("/admin/closures", shut)).status).toBe(201);
    await server.request("PUT", "/admin/tenants/night/quota", { held_locks: 1000, reason: "a trial run" });
    const page = await themed(browser, theme);
    await enter(server, page);
    for (const { hash, press } of dialogs) {
      await to(server, page, hash);
      await page.getByRole("button", { name: press }).first().click();
      await expect(page.getByRole("dialog")).toBeVisible();
      expect(await violations(page), `${hash}: ${press}`).toEqual([]);
      await page.keyboard.press("Escape");
      await expect(page.getByRole("dialog")).toBeHidden();
    }
    await page.context().close();
  });
}
