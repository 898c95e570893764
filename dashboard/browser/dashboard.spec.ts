import { join } from "node:path";
import { expect, type Page, test } from "@playwright/test";
import { Server, until } from "./server";
import { attack, signIn, themed, unhurt, violations } from "./world";

let server: Server;
test.beforeAll(async () => {
  test.setTimeout(300_000); // the server may have to be compiled
  server = await Server.start();
});
test.afterAll(() => server?.close());

const pages = [
  "",
  "locks",
  "events",
  "orders",
  "audit",
  "webhooks",
  "webhooks/callbacks",
  "blocking",
  "holders",
  "holders?holder=nobody",
];

const to = (page: Page, hash: string) => page.goto(`${server.url}/dashboard/#/${hash}`);

test("the printed link signs in once, and leaves no code behind", async ({ page, browser }) => {
  const requests: string[] = [];
  page.on("request", (r) => requests.push(r.url()));
  const link = server.link();
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("code");
  expect(requests.filter((u) => u.includes("code="))).toEqual([]);
  const cookies = await page.context().cookies();
  expect(cookies.map((c) => [c.httpOnly, c.sameSite])).toEqual([[true, "Strict"]]);
  const second = await browser.newPage();
  await second.goto(link);
  await expect(second.getByRole("alert")).toContainText("was used");
  await second.close();
});

test("a token that will not do is refused in words, and signing out asks for one", async ({ page }) => {
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Bearer token").fill("nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("not a signed token");
  await page.getByLabel("Bearer token").fill(server.tokenOf("acme", "locks:read"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("tenant-admin");
  await signIn(server, page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
});

test("the page loads little, and nothing from elsewhere", async ({ page }) => {
  let script = 0;
  const hosts = new Set<string>();
  const errors: string[] = [];
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => {
    if (m.text().includes("Content Security Policy")) errors.push(m.text());
  });
  page.on("response", async (r) => {
    hosts.add(new URL(r.url()).host);
    if (r.url().endsWith(".js")) script += Number(r.headers()["content-length"]);
  });
  await signIn(server, page);
  for (const p of pages) await to(page, p);
  expect([...hosts]).toEqual([new URL(server.url).host]);
  expect(script).toBeGreaterThan(5_000);
  expect(script).toBeLessThan(60 << 10);
  console.log(`the first load has ${(script / 1024).toFixed(1)} KB of compressed script`);
  expect(errors).toEqual([]);
});

test("who blocks is found from the overview, positions move up, and time runs down", async ({ page }) => {
  const held = await server.acquire("orders:7", { holder: "slow", ttl_seconds: 60 });
  expect(held.status).toBe(201);
  const waits = ["first", "second"].map(async (holder, i) => {
    await new Promise((resolve) => setTimeout(resolve, 300 * (i + 1)));
    return server.acquire("orders:7", { holder, ttl_seconds: 60, wait_seconds: 45 });
  });
  await signIn(server, page);
  await page.getByRole("link", { name: "orders:7" }).first().click();
  await expect(page.getByRole("heading", { name: "slow" })).toBeVisible();
  const rows = page.getByRole("table", { name: "Who waits, in order" }).locator("tbody tr");
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(0)).toContainText(/1.*first/);
  await expect(rows.nth(1)).toContainText(/2.*second/);
  const left = async () => Number(/(\d+) s left/.exec((await page.getByText(/s left/).textContent()) ?? "")?.[1]);
  const before = await left();
  await until("time runs down", async () => (await left()) < before - 1);

  await server.release("orders:7", held.token);
  await expect(page.getByRole("heading", { name: "first" })).toBeVisible();
  await expect(rows).toHaveCount(1);
  await expect(rows.nth(0)).toContainText(/1.*second/);
  const first = await waits[0];
  await server.release("orders:7", first?.token ?? "");
  await server.release("orders:7", (await waits[1])?.token ?? "");
  await expect(page.getByText("Nobody holds it")).toBeVisible();
});

test("names are text, whatever stands in them", async ({ page }) => {
  const held = await server.acquire("xss:1", {
    holder: attack,
    metadata: { [attack.slice(0, 60)]: attack },
    ttl_seconds: 60,
  });
  expect(held.status).toBe(201);
  await signIn(server, page);
  await to(page, "locks?search=xss");
  await expect(page.getByRole("table").getByText("<img src=x")).toBeVisible();
  await to(page, "locks/demo/xss%3A1");
  await expect(page.getByRole("heading", { name: "<img src=x" })).toBeVisible();
  await to(page, "events");
  await expect(page.getByText("from now on")).toBeVisible();
  await server.release("xss:1", held.token);
  await expect(page.getByText("<img src=x")).toBeVisible();
  await to(page, `locks/demo/${encodeURIComponent(attack)}`);
  await expect(page.getByRole("heading", { name: "<img src=x" })).toBeVisible();
  await unhurt(page);
});

test("nothing moves while it is paused", async ({ page }) => {
  await signIn(server, page);
  await to(page, "events");
  await expect(page.getByText("from now on")).toBeVisible();
  await page.keyboard.press("p");
  await expect(page.getByRole("button", { name: "Paused" })).toBeVisible();
  const held = await server.acquire("paused:1", { ttl_seconds: 60 });
  await server.release("paused:1", held.token);
  await expect(page.getByText(/[1-9] new while paused/)).toBeVisible();
  await expect(page.getByText("paused:1")).toHaveCount(0);
  await page.getByRole("button", { name: "Paused" }).click();
  await expect(page.getByText("paused:1").first()).toBeVisible();
});

test("the address is what is on the screen", async ({ page }) => {
  const held = await server.acquire("kept:1", { holder: "w", ttl_seconds: 60 });
  await signIn(server, page);
  await to(page, "locks");
  await page.keyboard.press("/");
  await expect(page.getByLabel("Name")).toBeFocused();
  await page.keyboard.type("kept");
  await expect(page).toHaveURL(/search=kept/);
  await page.reload();
  await expect(page.getByLabel("Name")).toHaveValue("kept");
  await expect(page.getByRole("link", { name: "kept:1" })).toBeVisible();
  await page.getByRole("link", { name: "kept:1" }).focus();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
  await server.release("kept:1", held.token);
});

test("a tenant's operator sees that tenant alone", async ({ page }) => {
  const theirs = await server.acquire("theirs:1", { ttl_seconds: 60 });
  const mine = await server.acquire("mine:1", { ttl_seconds: 60 }, server.tokenOf("acme", "locks:write"));
  expect([theirs.status, mine.status]).toEqual([201, 201]);
  await signIn(server, page, server.tokenOf("acme", "tenant-admin"));
  await to(page, "locks");
  await expect(page.getByRole("link", { name: "mine:1" })).toBeVisible();
  await expect(page.getByText("theirs:1")).toHaveCount(0);
  await expect(page.getByLabel("Tenant")).toHaveCount(0);
  for (const hash of ["locks/demo/theirs%3A1", "locks?tenant=demo"]) {
    await to(page, hash);
    await expect(page.getByRole("alert")).toContainText("own tenant");
  }
  await server.release("theirs:1", theirs.token);
});

test.describe("with traffic", () => {
  let end: () => Promise<void>;
  test.beforeAll(async () => {
    test.setTimeout(300_000);
    end = server.traffic("-crowd", "12");
    await until("there is something to see", async () => {
      const r = await fetch(`${server.url}/admin/overview`, { headers: { Authorization: `Bearer ${server.token}` } });
      return ((await r.json()) as { waiting: number }).waiting > 15;
    });
  });
  test.afterAll(() => end?.());

  for (const theme of ["light", "dark"] as const) {
    test(`everybody can use it: no violation on any page, ${theme}`, async ({ browser }) => {
      test.setTimeout(300_000); // on a busy machine each look takes ten seconds
      const page = await themed(browser, theme);
      await page.goto(`${server.url}/dashboard/`);
      await expect(page.getByLabel("Bearer token")).toBeVisible();
      expect(await violations(page)).toEqual([]);
      await signIn(server, page);
      for (const p of [...pages, "locks/demo/orders%3Acheckout", "locks/demo/nothing"]) {
        await to(page, p);
        await expect(page.getByText("Loading")).toHaveCount(0);
        expect(await violations(page), p).toEqual([]);
      }
      await page.keyboard.press("?");
      expect(await violations(page)).toEqual([]);
      await page.context().close();
    });
  }

  test("it fits a screen of 320 pixels", async ({ page }) => {
    await page.setViewportSize({ width: 320, height: 640 });
    await signIn(server, page);
    for (const p of [...pages, "locks/demo/orders%3Acheckout"]) {
      await to(page, p);
      await expect(page.getByText("Loading")).toHaveCount(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), p).toBeLessThanOrEqual(320);
    }
  });

  // Pictures for the documents: SCREENSHOTS=1 writes them anew.
  test("pictures", async ({ browser }) => {
    const images = process.env.SCREENSHOTS
      ? join(import.meta.dirname, "..", "..", "docs", "images")
      : test.info().outputDir;
    for (const name of ["invoices:41", "invoices:42", "export"]) {
      await server.revoke(name, "its node was lost in the fire");
    }
    for (const [theme, names] of [
      ["light", ["overview", "locks", "events", "blocking"]],
      ["dark", ["lock", "audit"]],
    ] as const) {
      const page = await themed(browser, theme);
      await page.setViewportSize({ width: 1120, height: 640 });
      await signIn(server, page);
      for (const name of names) {
        await to(page, { overview: "", lock: "locks/demo/orders%3Acheckout" }[name as string] ?? name);
        await expect(page.getByText("Loading")).toHaveCount(0);
        if (name === "events") await expect(page.locator(".tail li").nth(12)).toBeVisible();
        await page.mouse.move(0, 0);
        await page.screenshot({ path: join(images, `dashboard-${name}-${theme}.png`) });
      }
      if (theme === "light") {
        await to(page, "locks/demo/orders%3Acheckout");
        await page
          .getByRole("button", { name: /^Revoke/ })
          .first()
          .click();
        await page.getByLabel("Reason").fill("its node was lost in the fire");
        await page.screenshot({ path: join(images, "dashboard-revoke-light.png") });
        await page.keyboard.press("Escape");
      }
      await page.context().close();
    }
  });
});
