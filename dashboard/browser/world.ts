import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, expect, type Page } from "@playwright/test";
import type { Server } from "./server";

/** A name that would run a script on the operators' page if it were not escaped. */
export const attack = `<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>"'&`;

/** The pages, by what follows the # in their addresses. */
export const pages = [
  "",
  "locks",
  "events",
  "orders",
  "audit",
  "webhooks",
  "webhooks?of=all",
  "webhooks/callbacks",
  "webhooks/demo/callbacks",
  "blocking",
  "holders",
  "holders?holder=nobody",
  "contention",
  "closures",
  "tenants",
  "tenants/demo",
];

/** Opens the dashboard and signs in at the door. */
export async function signIn(server: Server, page: Page, token = server.token): Promise<void> {
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Bearer token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
}

/** Has the browser of a page be signed in, without opening one. */
export async function enter(server: Server, page: Page, token = server.token): Promise<void> {
  const session = { data: { bearer_token: token } };
  expect((await page.request.post(`${server.url}/dashboard/session`, session)).status()).toBe(200);
}

/** Goes to a page, by what follows the # in its address. */
export const to = (server: Server, page: Page, hash: string) => page.goto(`${server.url}/dashboard/#/${hash}`);

export async function themed(browser: Browser, theme: "light" | "dark"): Promise<Page> {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width: 1280, height: 800 } });
  return context.newPage();
}

/** What axe finds wrong with what is on the screen: all that it knows, or what colours decide. */
export async function violations(page: Page, coloursAlone = false): Promise<string[]> {
  const axe = new AxeBuilder({ page });
  const found = await (coloursAlone ? axe.withTags("cat.color") : axe).analyze();
  return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`);
}

/** Fails if something of what was shown was run, or became an element. */
export async function unhurt(page: Page): Promise<void> {
  expect(await page.evaluate(() => "hurt" in window)).toBe(false);
  expect(await page.locator("img, #app script").count()).toBe(0);
}
