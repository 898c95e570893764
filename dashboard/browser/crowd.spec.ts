import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { contended, crowd, fill, lockName, percentile, told } from "./crowd";
import { test } from "./fixture";
import { changesSeen, framesWhile, timed } from "./measure";
import { root, Server } from "./server";
import { enter, themed, to } from "./world";

/**
 * How late things may be, in milliseconds: `make crowd` has the machine to itself. Beside other tests it is only
 * seen that nothing is out of all proportion.
 */
const alone = process.env.CROWD === "alone";
const most = alone ? { page: 200, frame: 50, change: 1500 } : { page: 10_000, frame: 3000, change: 5000 };

/** What was later than it may be: said at the end, so that the rest is measured on the same server. */
const late: string[] = [];

/** Says what was measured, and notes it if it is above the bar. */
function measured(what: string, ms: number, bar: number, words = `${ms.toFixed(0)} ms`): void {
  console.log(`${what}: ${words}`);
  if (ms > bar) late.push(`${what}: ${words}, above ${bar} ms`);
}

let server: Server; // its own: there is nothing on it but the crowd
let token: string;
test.beforeAll(async () => {
  test.setTimeout(300_000);
  server = await Server.start();
  token = server.tokenOf("crowd", "tenant-admin locks:write");
  const from = performance.now();
  await fill(server, token);
  console.log(`${crowd.locks} locks, ${crowd.waiters} waiters, in ${((performance.now() - from) / 1000).toFixed(1)} s`);
});
test.afterAll(() => server?.close());

const number = (n: number): string => n.toLocaleString("en");
const hundredth = { selector: "table.locks tbody tr:nth-child(100)", text: "" };

/** Opens the list from a page that asks for nothing, and returns how long that took. */
async function open(page: Page, query = ""): Promise<number> {
  await to(server, page, "nowhere");
  await expect(page.getByRole("heading", { name: "No such page" })).toBeVisible();
  return timed(page, { hash: `#/locks${query}` }, hundredth);
}

const names = (page: Page): Promise<string[]> => page.locator("table.locks td.name a").allTextContents();

test("the first page of a great many locks is there at once, in any order", async ({ page }) => {
  await enter(server, page);
  await open(page); // the program of the page is compiled
  for (const sort of ["-waiters", "name", "-name", "-oldest_wait", "-held_for", "-utilization"]) {
    const took = await open(page, `?sort=${sort}`);
    measured(`first page by ${sort}`, took, most.page);
    await expect(page.getByText(`${number(crowd.locks)} locks`, { exact: true })).toBeVisible();
  }
});

test("pages of a great many locks are turned, each lock once and in order", async ({ page }) => {
  await enter(server, page);
  await open(page, "?sort=name");
  const took: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    expect(await names(page)).toEqual(Array.from({ length: 100 }, (_, i) => lockName(turn * 100 + i)));
    const next = { selector: "table.locks tbody tr td.name a", text: lockName((turn + 1) * 100) };
    took.push(await timed(page, { press: ".page > .row button:last-child" }, next));
  }
  measured("another page", percentile(took, 1), most.page, told(took));
  await page.goBack();
  await expect(page.getByRole("link", { name: lockName(900) })).toBeVisible();
  await page.getByRole("button", { name: "First page" }).click();
  await expect(page.getByRole("link", { name: lockName(0) })).toBeVisible();
});

test("a great many locks are searched and filtered", async ({ page }) => {
  await enter(server, page);
  await open(page);
  const last = lockName(crowd.locks - 1);
  await page.getByLabel("Name").fill(last);
  await expect(page.getByText("1 lock", { exact: true })).toBeVisible();
  expect(await names(page)).toEqual([last]);
  await page.getByLabel("Name").fill(`${last.slice(0, -2)}*`);
  await expect(page.getByText("100 locks", { exact: true })).toBeVisible();
  await page.getByLabel("Name").fill("");
  await page.getByLabel("State").selectOption("With waiters");
  await expect(page.getByText(`${number(contended)} locks`, { exact: true })).toBeVisible();
  await page.getByLabel("State").selectOption("In use");
  await page.getByRole("searchbox", { name: "Holder" }).fill("picker-1");
  await expect(page.getByText("32 locks", { exact: true })).toBeVisible();
});

test("the list scrolls without a halt while it changes", async ({ page }) => {
  await enter(server, page);
  await open(page, "?sort=name");
  await page.mouse.move(700, 500);
  let going = true;
  const changes = (async () => {
    for (let i = 0; going; i++) {
      const held = await server.acquire(`changing:${i % 7}`, { ttl_seconds: 60 }, token);
      await new Promise((resolve) => setTimeout(resolve, 25));
      await server.release(`changing:${i % 7}`, held.token, token);
    }
  })();
  const frames = await framesWhile(page, async () => {
    for (let step = 0; step < 80; step++) await page.mouse.wheel(0, step < 40 ? 120 : -120);
  });
  going = false;
  await changes;
  expect(frames.length).toBeGreaterThan(20);
  measured("a frame while it scrolls", percentile(frames, 0.95), most.frame, told(frames));
});

const waits = { ttl_seconds: 600, wait_seconds: 600, async: true };
for (const { what, hash, ask } of [
  {
    what: "the list",
    hash: "locks?search=seen%3A*&sort=name",
    ask: (name: string) => ({ lock: `seen:${name}`, body: { ttl_seconds: 600 } }),
  },
  {
    what: "a lock's queue",
    hash: "locks/crowd/queue",
    ask: (name: string) => ({ lock: "queue", body: { holder: `seen:${name}`, ...waits } }),
  },
]) {
  test(`a change is on the screen with the next poll: ${what}`, async ({ page }) => {
    await enter(server, page);
    if (what !== "the list") await server.acquire("queue", { ttl_seconds: 600 }, token);
    await to(server, page, hash);
    await expect(page.getByText("Loading")).toHaveCount(0);
    const seen = await changesSeen(page, alone ? 3 : 1, {
      come: (name) => server.acquire(ask(name).lock, ask(name).body, token),
      go: (name, made) => server.release(ask(name).lock, made.token, token),
    });
    measured(`a change in ${what}`, percentile(seen, 0.99), most.change, told(seen));
  });
}

test("pictures of a server that has too much to do", async ({ browser }) => {
  const images = process.env.SCREENSHOTS ? join(root, "docs", "images") : test.info().outputDir;
  for (const theme of ["light", "dark"] as const) {
    const page = await themed(browser, theme);
    await page.setViewportSize({ width: 1120, height: 640 });
    await enter(server, page);
    for (const name of ["overview", "locks", "blocking"]) {
      await to(server, page, name === "overview" ? "" : name);
      await expect(page.getByText("Loading")).toHaveCount(0);
      if (name === "overview") {
        const figures = page.locator(".figures").first();
        await expect(figures).toContainText(`${number(crowd.waiters)} requests`);
        await expect(figures).toContainText(`at ${number(contended)} locks`);
      }
      if (name === "blocking") await expect(page.getByText(/^longest for/).nth(5)).toBeVisible();
      expect(await page.evaluate(() => document.documentElement.scrollWidth), name).toBeLessThanOrEqual(1120);
      await page.mouse.move(0, 0);
      await page.screenshot({ path: join(images, `dashboard-crowded-${name}-${theme}.png`) });
    }
    await page.context().close();
  }
});

test("nothing was later than it may be", () => {
  expect(late).toEqual([]);
});
