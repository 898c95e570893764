import { expect } from "@playwright/test";
import { test } from "./fixture";
import { until } from "./server";
import { attack, enter, pages, signIn, to, unhurt } from "./world";

test("the printed link signs in once, and leaves no code behind", async ({ page, browser, server }) => {
  const requests: string[] = [];
  page.on("request", (r) => requests.push(r.url()));
  const link = server.link();
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("code");
  await expect(page.getByRole("link", { name: "Overview" })).toHaveAttribute("aria-current", "page");
  for (const nowhere of ["bogus", "locks/demo/%zz"]) {
    await to(server, page, nowhere);
    await expect(page.getByRole("heading", { name: "No such page" })).toBeVisible();
  }
  expect(requests.filter((u) => u.includes("code="))).toEqual([]);
  const cookies = await page.context().cookies();
  expect(cookies.map((c) => [c.httpOnly, c.sameSite])).toEqual([[true, "Strict"]]);
  const second = await browser.newPage();
  await second.goto(link);
  await expect(second.getByRole("alert")).toContainText("was used");
  await second.close();
});

test("a token that will not do is refused in words, and signing out asks for one", async ({ page, server }) => {
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Bearer token").fill("nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("not a JSON Web Token");
  await page.getByLabel("Bearer token").fill(server.tokenOf("acme", "locks:read"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("tenant-admin");
  await signIn(server, page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
});

test("the page loads little, and nothing from elsewhere", async ({ page, server }) => {
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
  for (const p of pages) await to(server, page, p);
  expect([...hosts]).toEqual([new URL(server.url).host]);
  expect(script).toBeGreaterThan(5_000);
  expect(script).toBeLessThan(60 << 10);
  console.log(`the first load has ${(script / 1024).toFixed(1)} KB of compressed script`);
  expect(errors).toEqual([]);
});

test("who blocks is found from the overview, positions move up, and time runs down", async ({ page, server }) => {
  const held = await server.acquire("orders:7", { holder: "slow", ttl_seconds: 60 });
  expect(held.status).toBe(201);
  const waits = ["first", "second"].map(async (holder, i) => {
    await new Promise((resolve) => setTimeout(resolve, 300 * (i + 1)));
    return server.acquire("orders:7", { holder, ttl_seconds: 60, wait_seconds: 45 });
  });
  await enter(server, page);
  await to(server, page, "");
  await page.getByRole("link", { name: "orders:7" }).first().click();
  await expect(page.getByRole("heading", { name: "slow" })).toBeVisible();
  const rows = page.getByRole("table", { name: "Waiters, in order" }).locator("tbody tr");
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
  await expect(page.getByText("No holder")).toBeVisible();
});

test("the overview shows the last hours: waits, grants and expired leases", async ({ page, server }) => {
  const token = server.tokenOf("hours", "tenant-admin locks:write");
  await server.acquire("hours:1", { ttl_seconds: 60 }, token);
  await server.acquire("hours:1", { ttl_seconds: 60, wait_seconds: 60, async: true }, token);
  const asked = page.waitForRequest(/\/admin\/series\?step_seconds=300$/);
  await signIn(server, page, token);
  await asked;
  const hours = page.getByRole("region", { name: /^Last hours/ });
  await expect(hours.getByRole("img", { name: /^Waiting, requests: on average/ })).toBeVisible();
  await expect(hours.getByRole("img", { name: /^Acquired, grants: acquired [^0]/ })).toBeVisible();
  await expect(hours.getByRole("img", { name: /^Expired leases/ })).toBeVisible();
  await expect(hours).toContainText("in steps of 5 min");
  await hours.getByRole("link", { name: "Last 15 minutes" }).click();
  await expect(page.getByRole("heading", { name: "Contention" })).toBeVisible();
});

test("names are text, whatever stands in them", async ({ page, server }) => {
  const held = await server.acquire("xss:1", {
    holder: attack,
    metadata: { [attack.slice(0, 60)]: attack },
    ttl_seconds: 60,
  });
  expect(held.status).toBe(201);
  await enter(server, page);
  await to(server, page, "locks?search=xss");
  await expect(page.getByRole("table").getByText("<img src=x")).toBeVisible();
  await to(server, page, "locks/demo/xss%3A1");
  await expect(page.getByRole("heading", { name: "<img src=x" })).toBeVisible();
  await to(server, page, "events");
  await expect(page.getByText("from now on")).toBeVisible();
  await server.release("xss:1", held.token);
  await expect(page.getByText("<img src=x")).toBeVisible();
  await to(server, page, `locks/demo/${encodeURIComponent(attack)}`);
  await expect(page.getByRole("heading", { name: "<img src=x" })).toBeVisible();
  await unhurt(page);
});

test("nothing moves while it is paused", async ({ page, server }) => {
  await enter(server, page);
  await to(server, page, "events");
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

test("the address is what is on the screen", async ({ page, server }) => {
  const held = await server.acquire("kept:1", { holder: "w", ttl_seconds: 60 });
  await enter(server, page);
  await to(server, page, "locks");
  await expect(page.getByLabel("Name")).toBeVisible(); // before this, no field takes the key
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

test("a tenant's operator sees that tenant alone", async ({ page, server }) => {
  const theirs = await server.acquire("theirs:1", { ttl_seconds: 60 });
  const mine = await server.acquire("mine:1", { ttl_seconds: 60 }, server.tokenOf("acme", "locks:write"));
  expect([theirs.status, mine.status]).toEqual([201, 201]);
  await enter(server, page, server.tokenOf("acme", "tenant-admin"));
  await to(server, page, "locks");
  await expect(page.getByRole("link", { name: "mine:1" })).toBeVisible();
  await expect(page.getByText("theirs:1")).toHaveCount(0);
  await expect(page.getByLabel("Tenant")).toHaveCount(0);
  for (const hash of ["locks/demo/theirs%3A1", "locks?tenant=demo"]) {
    await to(server, page, hash);
    await expect(page.getByRole("alert")).toContainText("own tenant");
  }
  await server.release("theirs:1", theirs.token);
});
