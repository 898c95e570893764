import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import { root, type Server } from "./server";
import { enter, themed, to } from "./world";

// `make screenshots` writes the images of the documents. The heat map shows 15 minutes, so most of the time is traffic.
test.skip(!process.env.SCREENSHOTS, "only for make screenshots");

const minutes = Number(process.env.SCREENSHOTS);
const ttl_seconds = 3600;
const reason = "its node was lost in the fire";

/** chain makes a tenant in which some requests wait for a holder that waits itself. */
async function chain(server: Server): Promise<void> {
  const token = server.tokenOf("shop", "locks:read locks:write");
  const hold = (name: string, holder: string) => server.acquire(name, { holder, ttl_seconds }, token);
  const wait = async (name: string, holder: string) => {
    // The request stays open until the server ends.
    void server.acquire(name, { holder, ttl_seconds, wait_seconds: 600 }, token).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 300));
  };
  await hold("release:eu", "deploy-7");
  await hold("schema:orders", "migrate-3");
  await hold("stock:import", "import-1");
  await wait("release:eu", "migrate-3");
  await wait("schema:orders", "report-nightly");
  await wait("schema:orders", "import-1");
  await wait("stock:import", "checkout-14");
  await wait("stock:import", "checkout-9");
  await wait("release:eu", "smoke-test-2");
}

async function close(server: Server): Promise<void> {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const body = { tenant: "demo", until };
  await server.post("/admin/closures", { ...body, locks: "gpu-*", reason: "drivers are replaced in rack 7" });
  const migration = { reason: "the table of invoices is migrated", description: "CHG-2211" };
  await server.post("/admin/closures", { ...body, locks: "invoices:*", ...migration });
}

async function take(page: Page, name: string): Promise<void> {
  await expect(page.getByText("Loading")).toHaveCount(0);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(root, "docs", "images", `dashboard-${name}.png`) });
}

/** revoking opens the dialog of a holder, and fills it in. */
async function revoking(page: Page): Promise<void> {
  await expect(async () => {
    await page.keyboard.press("Escape"); // the form goes when the holder releases
    await page
      .getByRole("button", { name: /^Revoke/ })
      .first()
      .click({ timeout: 5_000 });
    await page.getByLabel("Reason").fill(reason, { timeout: 5_000 });
  }).toPass();
}

const size = { width: 1120, height: 720 };
const checkout = "locks/demo/orders%3Acheckout";

test("screenshots of the documents", async ({ browser, server }) => {
  test.setTimeout((minutes + 5) * 60_000);
  const end = server.traffic("-crowd", "12");
  await new Promise((resolve) => setTimeout(resolve, minutes * 60_000));
  for (const name of ["invoices:41", "invoices:42", "export"]) await server.revoke(name, reason);
  await chain(server);
  const light = await themed(browser, "light");
  const dark = await themed(browser, "dark");
  for (const page of [light, dark]) {
    await page.setViewportSize(size);
    await enter(server, page);
  }
  const show = async (page: Page, hash: string, name: string) => {
    await to(server, page, hash);
    await take(page, name);
  };
  await show(light, "", "overview-light");
  await show(light, "blocking?tenant=shop", "blocking-light");
  await show(dark, checkout, "lock-dark");
  await show(dark, "contention?tenant=demo", "contention-dark");
  await close(server);
  await show(light, "closures", "closures-light");
  await show(dark, "audit", "audit-dark");
  await to(server, light, checkout);
  await revoking(light);
  await take(light, "revoke-light");
  await end();
});
