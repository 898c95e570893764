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

/** Notes the streams of a page, and what it asks for that a stream tells. */
function asked(page: Page) {
  const seen = { streams: [] as string[], open: 0, else: [] as string[] };
  page.on("request", (r) => {
    const { pathname, search } = new URL(r.url());
    if (pathname === "/admin/watch") {
      seen.streams.push(search);
      seen.open++;
    } else if (/^\/admin\/(overview$|tenants$|locks$|locks\/[^/]*\/[^/]*$)/.test(pathname)) seen.else.push(pathname);
  });
  const ended = (r: { url: () => string }) => {
    if (new URL(r.url()).pathname === "/admin/watch") seen.open--;
  };
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  return seen;
}

test("a page has one stream of what is on the screen, and asks for nothing of that besides", async ({ page }) => {
  const seen = asked(page);
  await signIn(server, page);
  await expect(page.getByText("Nobody waits")).toBeVisible();
  await to(server, page, "locks");
  await expect(page.getByText("No lock is in use")).toBeVisible();
  const held = await server.acquire("seen:1", { holder: "one", ttl_seconds: 60 });
  await expect(page.getByRole("link", { name: "seen:1" })).toBeVisible();
  await to(server, page, "locks/demo/seen%3A1");
  await expect(page.getByRole("heading", { name: "one" })).toBeVisible();
  const next = server.acquire("seen:1", { holder: "two", ttl_seconds: 60, wait_seconds: 45 });
  await expect(page.getByRole("table").getByText("two")).toBeVisible();
  await server.release("seen:1", held.token);
  await expect(page.getByRole("heading", { name: "two" })).toBeVisible();
  await server.release("seen:1", (await next).token);
  await expect(page.getByText("Nobody holds it")).toBeVisible();
  await to(server, page, "tenants");
  await expect(page.getByText("No tenant uses a lock")).toBeVisible();
  const again = await server.acquire("seen:1", { holder: "one", ttl_seconds: 60 });
  await expect(page.getByRole("row", { name: "demo" })).toBeVisible();
  await server.release("seen:1", again.token);
  const views = ["overview", "locks", "lock", "tenants"];
  expect(seen.streams.map((s) => new URLSearchParams(s).get("view"))).toEqual(views);
  expect(seen.else).toEqual([]);
  await until("the streams of before have ended", async () => seen.open === 1);
});

test("pausing ends the stream, and going on shows what has come to be", async ({ page }) => {
  const seen = asked(page);
  await signIn(server, page);
  await to(server, page, "locks");
  await expect(page.getByText("No lock is in use")).toBeVisible();
  await page.keyboard.press("p");
  await until("no stream is open", async () => seen.open === 0);
  const held = await server.acquire("later:1", { ttl_seconds: 60 });
  await expect(page.getByText("No lock is in use")).toBeVisible();
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
  const lost = { revision: 1, server_now: new Date().toISOString(), replica: "r", store_lost_since: since };
  const list = { ...lost, locks: [], matching: 0 };
  const told = `event: snapshot\ndata: ${JSON.stringify({ ...lost, order: [], answer: list })}\n\n`;
  await page.route("**/admin/watch?view=locks*", (r) => r.fulfill({ contentType: "text/event-stream", body: told }));
  for (const path of ["overview", "closures"]) {
    await page.route(`**/admin/${path}`, async (r) => {
      const response = await r.fetch();
      return r.fulfill({ response, json: { ...(await response.json()), store_lost_since: since } });
    });
  }
  await signIn(server, page);
  for (const at of ["locks", "closures", "events"]) {
    await to(server, page, at);
    const said = `The server does not see the store. What you see is as of ${since.slice(0, 10)} ${since.slice(11, 19)} UTC.`;
    await expect(page.getByRole("alert")).toContainText(said);
    await expect(page.getByRole("button", { name: `No store since ${since.slice(11, 19)}` })).toBeVisible();
  }
  await to(server, page, "blocking");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Live", exact: true })).toBeVisible();
});

test("a stream that is cut is said, and taken up again", async ({ page }) => {
  await signIn(server, page);
  await to(server, page, "locks");
  await expect(page.getByText("No lock is in use")).toBeVisible();
  await page.context().setOffline(true); // ends no connection that is open
  await server.kill();
  await expect(page.getByRole("alert")).toContainText(/Connection lost, reconnecting.* as of .* UTC/);
  await expect(page.getByRole("button", { name: "Not live" })).toBeVisible();
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
  await expect(page.getByText("this browser keeps the session until it does")).toBeVisible();
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
    await expect(page.getByRole("alert")).toContainText(/No word from the server for \d+ s/, { timeout: 12_000 });
    await expect(page.getByRole("button", { name: "Not live" })).toBeVisible();
    const ages = page.locator("table.locks time");
    const before = await ages.allTextContents();
    const silent = async () => Number(/for (\d+) s/.exec((await page.getByRole("alert").textContent()) ?? "")?.[1]);
    const at = await silent();
    await until("it is silent for longer", async () => (await silent()) > at + 2);
    expect(await ages.allTextContents()).toEqual(before);
    await to(server, page, "closures");
    await expect(page.getByText("Nothing could be loaded")).toBeVisible();
  } finally {
    server.goOn();
  }
  await expect(page.getByText("Nothing is closed")).toBeVisible();
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

test("where nothing is streamed, it is asked for every so often", async ({ page }) => {
  await page.route("**/admin/watch*", (route) =>
    route.fulfill({ status: 429, contentType: "application/problem+json", body: '{"code":"quota_exceeded"}' }),
  );
  await signIn(server, page);
  await to(server, page, "locks");
  await expect(page.getByText("No lock is in use")).toBeVisible();
  const held = await server.acquire("polled:1", { ttl_seconds: 60 });
  await expect(page.getByRole("link", { name: "polled:1" })).toBeVisible();
  await server.release("polled:1", held.token);
  await expect(page.getByText("No lock is in use")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
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
