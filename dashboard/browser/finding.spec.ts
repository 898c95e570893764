import { expect } from "@playwright/test";
import { test } from "./fixture";
import { enter, to } from "./world";

/** Locks of one holder, in sets. */
const sets = (prefix: string, n: number) =>
  Array.from({ length: n }, (_, s) =>
    Array.from({ length: 32 }, (_, i) => ({ name: `${prefix}:${String(s * 32 + i).padStart(3, "0")}` })),
  );

test("filters, order and page of Locks are in the address, and a link has them all", async ({ page, server }) => {
  const far = server.tokenOf("far", "locks:write");
  for (const locks of sets("kept", 7)) {
    await server.post("/locksets", { holder: "keeper", locks, ttl_seconds: 600 }, far);
  }
  await server.acquire("kept-not:1", { holder: "keeper", ttl_seconds: 600 }, far);
  await server.acquire("kept:999", { holder: "other", ttl_seconds: 600 }, far);
  await server.acquire("kept:000", { holder: "keeper", ttl_seconds: 600 });
  await enter(server, page);
  await to(server, page, "locks");
  await page.getByLabel("Name").fill("kept:*");
  await page.getByRole("searchbox", { name: "Holder" }).fill("keeper");
  await page.getByLabel("Tenant").fill("far");
  await page.getByLabel("State").selectOption("Held");
  // A table of other locks takes this one's place, and a click in that moment would be of neither.
  await expect(page.getByText("224 locks", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Lock", exact: true }).click();
  const by = page.getByRole("columnheader", { name: "Lock", exact: true });
  await expect(by).toHaveAttribute("aria-sort", "ascending");
  await page.getByRole("button", { name: "Lock", exact: true }).click();
  await expect(by).toHaveAttribute("aria-sort", "descending");
  await expect(page.getByText("224 locks", { exact: true })).toBeVisible();
  const first = page.locator("table.locks td.name a").first();
  await expect(first).toHaveText("kept:223");
  await page.getByRole("button", { name: "Next 100" }).click();
  await expect(first).toHaveText("kept:123");
  const address = page.url();
  const query = Object.fromEntries(new URLSearchParams(address.split("?")[1]));
  expect(query).toEqual({
    search: "kept:*",
    holder: "keeper",
    tenant: "far",
    state: "held",
    sort: "-name",
    cursor: expect.any(String),
  });

  const other = await page.context().newPage();
  await other.goto(address);
  const link = other.locator("table.locks td.name a");
  await expect(link.first()).toHaveText("kept:123");
  await expect(link).toHaveCount(100);
  await expect(other.getByLabel("Name")).toHaveValue("kept:*");
  await expect(other.getByRole("searchbox", { name: "Holder" })).toHaveValue("keeper");
  await expect(other.getByLabel("Tenant")).toHaveValue("far");
  await expect(other.getByLabel("State")).toHaveValue("held");
  await expect(other.getByRole("columnheader", { name: "Lock", exact: true })).toHaveAttribute(
    "aria-sort",
    "descending",
  );
  await other.close();

  await page.goBack(); // a page is a step, a filter is none
  await expect(first).toHaveText("kept:223");
  await page.getByRole("button", { name: "Next 100" }).click();
  await page.getByLabel("Name").fill("kept:00");
  await expect(page.getByText("10 locks", { exact: true })).toBeVisible();
  await expect(page).not.toHaveURL(/cursor=/);
});

test("Deadlocks has who was refused in which circle, and both orders with an example of each", async ({
  page,
  server,
}) => {
  const knot = server.tokenOf("knot", "tenant-admin locks:write");
  const acquire = (name: string, holder: string, wait = 0) =>
    server.acquire(name, { holder, ttl_seconds: 300, wait_seconds: wait }, knot);
  await acquire("knot:left", "ann");
  const right = await acquire("knot:right", "ben");
  const waits = acquire("knot:right", "ann", 45);
  await enter(server, page, knot);
  await to(server, page, "locks");
  await expect(page.getByRole("img", { name: "1 holder, 1 waiter" })).toBeVisible();
  expect((await acquire("knot:left", "ben", 45)).status).toBe(409);
  await server.release("knot:right", right.token, knot);
  const taken = await waits;
  await server.release("knot:right", taken.token, knot);
  await to(server, page, "orders");
  const refused = page.getByRole("region", { name: "Rejected deadlocks" }).getByRole("listitem").first();
  await expect(refused).toContainText(
    "ben requested knot:left. The server rejected it: 2 waits would have formed a cycle.",
  );
  await expect(refused).toContainText(/ben.*waits for knot:left, held by.*ann.*waits for knot:right, held by.*ben/);
  await expect(page.getByRole("region", { name: "Observed lock orders" })).toContainText("ann: knot:left, knot:right");
});

test("contradicting orders are drawn, each way with who took it so", async ({ page, server }) => {
  const cross = server.tokenOf("cross", "tenant-admin locks:write");
  for (const [holder, names] of [
    ["up", ["lift", "ramp"]],
    ["down", ["ramp", "lift"]],
  ] as const) {
    const held = [];
    for (const name of names) held.push(await server.acquire(name, { holder, ttl_seconds: 60 }, cross));
    for (const [i, h] of held.entries()) await server.release(names[i] ?? "", h.token, cross);
  }
  await enter(server, page, cross);
  await to(server, page, "orders");
  const drawn = page.getByRole("img", { name: "Contradicting lock orders of ramp and lift" });
  await expect(drawn).toContainText("up");
  await expect(drawn).toContainText("down");
  const said = page.getByRole("region", { name: "Contradicting lock orders" });
  await expect(said).toContainText(/lift .*ramp up held lift and acquired ramp/);
  await expect(said).toContainText(/ramp .*lift down held ramp and acquired lift/);
});

test("Blocking has the worst first, with the fence, the places and what else is in the way", async ({
  page,
  server,
}) => {
  const jam = server.tokenOf("jam", "tenant-admin locks:write");
  const waits = { ttl_seconds: 300, wait_seconds: 300, async: true };
  await server.acquire("jam:small", { holder: "small", ttl_seconds: 300 }, jam);
  const large = await server.acquire("jam:large", { holder: "large", ttl_seconds: 300 }, jam);
  await server.acquire("jam:small", { holder: "alone", ...waits }, jam);
  for (let i = 1; i <= 10; i++) await server.acquire("jam:large", { holder: `behind-${i}`, ...waits }, jam);
  await enter(server, page);
  await to(server, page, "blocking?tenant=jam");
  const trees = page.getByRole("region", { name: /^Blocked by/ });
  await expect(trees).toHaveCount(2);
  await expect(page.getByText("11 waiting behind 2 holders")).toBeVisible();
  const worst = trees.first();
  await expect(worst).toContainText("large");
  await expect(worst).toContainText("10 wait");
  await expect(worst).toContainText(/holds jam:large for .*, fence/);
  await expect(worst).toContainText(`fence ${large.fence}`);
  const behind = worst.locator(".tree li");
  await expect(behind).toHaveCount(8);
  await expect(behind.first()).toContainText(/behind-1waits for jam:large, position 1blocked for/);
  await worst.getByRole("button", { name: "Show all 10" }).click();
  await expect(behind.nth(9)).toContainText("position 10");
});

test("a lock has how long its waits and holds took, in steps and in words", async ({ page, server }) => {
  const spread = server.tokenOf("spread", "tenant-admin locks:write");
  for (let i = 0; i < 20; i++) {
    const held = await server.acquire("spread:1", { holder: `w-${i}`, ttl_seconds: 60 }, spread);
    await server.release("spread:1", held.token, spread);
  }
  await enter(server, page, spread);
  await to(server, page, "locks/spread/spread%3A1");
  const figures = page.getByRole("region", { name: "Statistics" });
  await expect(figures).toContainText("20 grants, no expired lease");
  for (const name of ["Wait time", "Hold time"]) {
    const one = figures.locator(".sheet", { has: page.getByRole("heading", { name }) });
    await expect(one).toContainText(/p50 .*, p90 .*, p99 /);
    const steps = (await one.locator("dd").allTextContents()).map(Number);
    expect(steps.reduce((a, b) => a + b, 0)).toBe(20);
    const longest = await one
      .locator(".bar > i")
      .evaluateAll((all) => all.map((i) => (i as HTMLElement).style.transform));
    expect(longest).toContain("scaleX(1)");
  }
});

test("the number of expired leases leads to the leases", async ({ page, server }) => {
  const gone = server.tokenOf("gone", "tenant-admin locks:write");
  await server.acquire("gone:1", { holder: "lost", ttl_seconds: 5 }, gone);
  await server.acquire("gone:kept", { holder: "there", ttl_seconds: 300 }, gone);
  await enter(server, page);
  await to(server, page, "");
  await page.getByRole("link", { name: /^\d+ in total$/ }).click();
  const events = page.getByRole("list", { name: "Events, newest first" }).getByRole("listitem");
  await expect(events.filter({ hasText: "gone:1" })).toContainText(/expired.*lost/);
  await expect(events.filter({ hasText: /enqueued|missed/ })).toHaveCount(0);
  await expect(page.getByLabel("From")).toHaveValue("kept");
  await to(server, page, "tenants");
  await page.getByRole("row", { name: "gone" }).getByRole("link", { name: "1", exact: true }).click();
  await expect(events.filter({ hasText: "gone:1" })).toHaveCount(1);
  await page.getByLabel("From").selectOption("Now on");
  await expect(page.getByText("No events yet")).toBeVisible();
});
