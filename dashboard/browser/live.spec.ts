import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import { Server, until } from "./server";
import { signIn, to } from "./world";

// Its own: it is killed here, and must have no locks but those of these tests.
let server: Server;
test.beforeAll(async () => {
  server = await Server.start();
});
test.afterAll(() => server?.close());

/** Notes what a page polls, and how. */
function asked(page: Page) {
  const seen = { paths: [] as string[], under: 0, most: 0, unchanged: 0 };
  const isPoll = (url: string) => /\/admin\/(overview|tenants|locks)/.test(new URL(url).pathname);
  page.on("request", (r) => {
    if (!isPoll(r.url())) return;
    seen.paths.push(new URL(r.url()).pathname);
    seen.most = Math.max(seen.most, ++seen.under);
  });
  const ended = (r: { url: () => string }) => {
    if (isPoll(r.url())) seen.under--;
  };
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  page.on("response", (r) => {
    if (isPoll(r.url()) && r.status() === 304) seen.unchanged++;
  });
  return seen;
}

test("a page polls what is on the screen, one request at a time, and draws nothing when that has not changed", async ({
  page,
}) => {
  const seen = asked(page);
  await signIn(server, page);
  await expect(page.getByText("No contention")).toBeVisible();
  await to(server, page, "locks");
  await expect(page.getByText("No locks in use")).toBeVisible();
  const held = await server.acquire("seen:1", { holder: "one", ttl_seconds: 60 });
  await expect(page.getByRole("link", { name: "seen:1" })).toBeVisible();
  await to(server, page, "locks/demo/seen%3A1");
  await expect(page.getByRole("heading", { name: "one" })).toBeVisible();
  const next = server.acquire("seen:1", { holder: "two", ttl_seconds: 60, wait_seconds: 45 });
  await expect(page.getByRole("table").getByText("two")).toBeVisible();
  await server.release("seen:1", held.token);
  await expect(page.getByRole("heading", { name: "two" })).toBeVisible();
  await server.release("seen:1", (await next).token);
  await expect(page.getByText("No holder")).toBeVisible();
  await to(server, page, "tenants");
  await expect(page.getByText("No tenants with locks in use")).toBeVisible();
  const again = await server.acquire("seen:1", { holder: "one", ttl_seconds: 60 });
  await expect(page.getByRole("row", { name: "demo" })).toBeVisible();
  await server.release("seen:1", again.token);
  await expect(page.getByText("No tenants with locks in use")).toBeVisible();
  await to(server, page, "locks");
  await until("the list has not changed", async () => seen.unchanged > 1);
  expect(new Set(seen.paths.slice(-2))).toEqual(new Set(["/admin/locks"]));
  expect(seen.most).toBe(1);
});

test("a page that is paused asks for nothing, and shows what has come to be when it goes on", async ({ page }) => {
  const seen = asked(page);
  await signIn(server, page);
  await to(server, page, "locks");
  await expect(page.getByText("No locks in use")).toBeVisible();
  await page.keyboard.press("p");
  await until("no request is under way", async () => seen.under === 0);
  const before = seen.paths.length;
  const held = await server.acquire("later:1", { ttl_seconds: 60 });
  await expect(page.getByText("No locks in use")).toBeVisible();
  await page.waitForTimeout(1500); // more than a poll
  expect(seen.paths.length).toBe(before);
  await page.getByRole("button", { name: "Paused" }).click();
  await expect(page.getByRole("link", { name: "later:1" })).toBeVisible();
  await server.release("later:1", held.token);
});

test("a filter keeps what is typed while the page is live, and counts once that has settled", async ({ page }) => {
  await signIn(server, page);
  await to(server, page, "locks");
  const holder = page.getByLabel("Holder");
  const held = [];
  let typed = "";
  for (const key of "wo") {
    await holder.press(key);
    typed += key;
    held.push(await server.acquire(`typed:${typed}`, { holder: typed, ttl_seconds: 60 })); // so that the page is redrawn
    await expect(page.getByRole("link", { name: `typed:${typed}`, exact: true })).toBeVisible();
    await expect(holder).toHaveValue(typed);
  }
  await expect(page.getByRole("link", { name: "typed:w", exact: true })).toBeHidden();
  await expect(page).toHaveURL(/holder=wo$/);
  await Promise.all(held.map((h, i) => server.release(`typed:${typed.slice(0, i + 1)}`, h.token)));
});

test("that the server does not see the store is said on every page, and time stands", async ({ page }) => {
  const since = new Date(Date.now() - 60_000).toISOString();
  for (const path of ["overview", "closures", "locks?*"]) {
    await page.route(`**/admin/${path}`, async (r) => {
      const response = await r.fetch();
      return r.fulfill({ response, json: { ...(await response.json()), store_lost_since: since } });
    });
  }
  await signIn(server, page);
  for (const at of ["locks", "closures", "events"]) {
    await to(server, page, at);
    const said = `Store unreachable. This page shows the state at ${since.slice(0, 10)} ${since.slice(11, 19)} UTC.`;
    await expect(page.getByRole("alert")).toContainText(said);
    await expect(page.getByRole("button", { name: `Stale since ${since.slice(11, 19)}` })).toBeVisible();
  }
  await to(server, page, "blocking");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Live", exact: true })).toBeVisible();
});

test("a connection that is lost is said, and taken up again", async ({ page }) => {
  await signIn(server, page);
  await to(server, page, "locks");
  await expect(page.getByText("No locks in use")).toBeVisible();
  await page.context().setOffline(true); // ends no connection that is open
  await server.kill();
  await expect(page.getByRole("alert")).toContainText(/Connection lost, reconnecting.* the state at .* UTC/);
  await expect(page.getByRole("button", { name: "Offline" })).toBeVisible();
  await server.run();
  await page.context().setOffline(false);
  await expect(page.getByRole("alert")).toBeHidden();
  await expect(page.getByRole("button", { name: "Live", exact: true })).toBeVisible();
  const held = await server.acquire("back:1", { ttl_seconds: 60 });
  await expect(page.getByRole("link", { name: "back:1" })).toBeVisible();
  await server.release("back:1", held.token);
});

test("who signs out while the server is away sees nothing any more, and is signed out once it is there", async ({
  page,
}) => {
  await signIn(server, page);
  await page.context().setOffline(true);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByText("browser keeps the session until then")).toBeVisible();
  await page.context().setOffline(false);
  await expect(page.getByText("You are signed out.")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
});

test("a server that hangs is known within some ten seconds, time stands, and no page is blank", async ({ page }) => {
  await signIn(server, page);
  const held = await server.acquire("hangs:1", { ttl_seconds: 120 });
  await to(server, page, "locks");
  await expect(page.getByRole("link", { name: "hangs:1" })).toBeVisible();
  server.hang();
  try {
    await expect(page.getByRole("alert")).toContainText(/No answer from the server for \d+ s/, { timeout: 12_000 });
    await expect(page.getByRole("button", { name: "Offline" })).toBeVisible();
    const ages = page.locator("table.locks time");
    const before = await ages.allTextContents();
    const silent = async () => Number(/for (\d+) s/.exec((await page.getByRole("alert").textContent()) ?? "")?.[1]);
    const at = await silent();
    await until("it is silent for longer", async () => (await silent()) > at + 2);
    expect(await ages.allTextContents()).toEqual(before);
    await to(server, page, "closures");
    await expect(page.getByText("Nothing loaded yet")).toBeVisible();
  } finally {
    server.goOn();
  }
  await expect(page.getByText("No closed locks")).toBeVisible();
  await expect(page.getByRole("alert")).toBeHidden();
  await server.release("hangs:1", held.token);
});

test("who signs out while the server hangs sees nothing any more at once", async ({ page }) => {
  await signIn(server, page);
  server.hang();
  try {
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect(page.getByLabel("Bearer token")).toBeVisible({ timeout: 2000 });
    await expect(page.getByText("the server has not confirmed that the session has ended")).toBeVisible();
    await expect(page.getByRole("link", { name: "Locks" })).toHaveCount(0);
    await expect(page).toHaveTitle("Sign in – Fencepost");
  } finally {
    server.goOn();
  }
  await expect(page.getByText("You are signed out.")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Bearer token")).toBeVisible();
});

test("two tabs show the same, and one that is closed leaves the other alone", async ({ page, context }) => {
  await signIn(server, page);
  await to(server, page, "locks");
  const second = await context.newPage();
  await to(server, second, "locks");
  const held = await server.acquire("both:1", { ttl_seconds: 60 });
  for (const p of [page, second]) await expect(p.getByRole("link", { name: "both:1" })).toBeVisible();
  await second.close();
  await server.release("both:1", held.token);
  await expect(page.getByRole("link", { name: "both:1" })).toHaveCount(0);
});
