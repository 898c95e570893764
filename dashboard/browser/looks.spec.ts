import { expect, type Page } from "@playwright/test";
import { test } from "./fixture";
import { until } from "./server";
import { enter, pages, themed, to, violations } from "./world";

let end: () => Promise<void>;
test.beforeAll(async ({ server }) => {
  end = server.traffic("-crowd", "12");
  await until("there is something to see", async () => {
    const r = await fetch(`${server.url}/admin/overview`, { headers: { Authorization: `Bearer ${server.token}` } });
    return ((await r.json()) as { waiting: number }).waiting > 15;
  });
});
test.afterAll(() => end?.());

for (const theme of ["light", "dark"] as const) {
  test(`everybody can use it: no violation on any page, ${theme}`, async ({ browser, server }) => {
    test.setTimeout(300_000); // on a busy machine each look takes ten seconds
    const page = await themed(browser, theme);
    const dark = theme === "dark"; // differs from light in its colours alone
    await page.goto(`${server.url}/dashboard/`);
    await expect(page.getByLabel("Bearer token")).toBeVisible();
    expect(await violations(page, dark)).toEqual([]);
    await enter(server, page);
    for (const p of [...pages, "locks/demo/orders%3Acheckout", "locks/demo/nothing"]) {
      await to(server, page, p);
      await expect(page.getByText("Loading")).toHaveCount(0);
      expect(await violations(page, dark), p).toEqual([]);
    }
    await page.keyboard.press("?");
    expect(await violations(page, dark)).toEqual([]);
    await page.context().close();
  });
}

test("it fits a screen of 320 pixels", async ({ page, server }) => {
  await page.setViewportSize({ width: 320, height: 640 });
  await enter(server, page);
  for (const p of [...pages, "locks/demo/orders%3Acheckout"]) {
    await to(server, page, p);
    await expect(page.getByText("Loading")).toHaveCount(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), p).toBeLessThanOrEqual(320);
  }
});

test("a phone has what matters in sight", async ({ page, server }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await enter(server, page);
  await to(server, page, "locks");
  const live = await page.getByRole("button", { name: "Live", exact: true }).boundingBox();
  expect(live?.height).toBeLessThan(44);
  const row = page.locator("table.locks tbody tr").first();
  await expect(row).toBeVisible();
  expect((await row.boundingBox())?.y).toBeLessThan(450);
  await to(server, page, "contention");
  const times = page.locator(".heat thead span");
  await expect(async () => {
    const shown = await times.evaluateAll(
      (all) =>
        all.filter((s) => {
          const { left, right, top } = s.getBoundingClientRect();
          const hit = document.elementFromPoint((left + right) / 2, top + 5);
          return left > 0 && right <= innerWidth && (hit === s || s.contains(hit));
        }).length,
    );
    expect(shown).toBeGreaterThan(0);
  }).toPass();
});

for (const theme of ["light", "dark"] as const) {
  test(`on a phone each row of a table is a block with labels, ${theme}`, async ({ browser, server }) => {
    test.setTimeout(180_000);
    const page = await themed(browser, theme);
    await page.setViewportSize({ width: 390, height: 844 });
    await enter(server, page);
    for (const p of [...pages, "holders?holder=worker-1", "locks/demo/orders%3Acheckout"]) {
      await to(server, page, p);
      await expect(page.getByText("Loading")).toHaveCount(0);
      expect(await sideways(page), p).toEqual([]);
      expect(await unlabelled(page), p).toEqual([]);
      if (await page.locator("tbody tr").count()) expect(await violations(page), p).toEqual([]);
    }
    // What orders a table is still there, and so is what one does to a row.
    await to(server, page, "locks");
    await page.getByRole("button", { name: "Oldest wait" }).click();
    await expect(page).toHaveURL(/sort=-oldest_wait/);
    await to(server, page, "locks/demo/orders%3Acheckout");
    const queue = page.getByRole("table", { name: "Waiters, in order" });
    await queue.evaluate((t) => t.scrollIntoView());
    await expect(queue.getByRole("button", { name: /^Revoke/ }).first()).toBeInViewport({ ratio: 1 });
    await page.context().close();
  });
}

/** The tables that do not fit, but for the heat map, which is a chart; and the page, if it is one. */
async function sideways(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const wide = [...document.querySelectorAll(".scroll:not(:has(.heat)), html")];
    return wide
      .filter((e) => e.scrollWidth > e.clientWidth)
      .map((e) => e.querySelector("caption")?.textContent ?? "page");
  });
}

/** The cells without what stands above their column; a name at the beginning of a row is its title. */
async function unlabelled(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLTableElement>("table:not(.heat)")].flatMap((t) =>
      [...(t.tBodies[0]?.rows[0]?.cells ?? [])]
        .filter((cell) => !cell.matches(".name:first-child, .act, :empty"))
        .filter((cell) => {
          const heading = t.tHead?.rows[0]?.cells[cell.cellIndex];
          const label = getComputedStyle(cell, "::before").content;
          return label === "none" || !heading?.textContent?.startsWith(JSON.parse(label));
        })
        .map((cell) => `${t.caption?.textContent}: ${cell.textContent}`),
    ),
  );
}

test("when an event was stands in one line", async ({ page, server }) => {
  await enter(server, page);
  await to(server, page, "events");
  const time = page.locator(".tail time").first();
  await expect(time).toBeVisible();
  expect((await time.boundingBox())?.height).toBeLessThan(28);
});

test("all of the table of Locks is in sight on 1120 pixels", async ({ page, server }) => {
  await page.setViewportSize({ width: 1120, height: 640 });
  await enter(server, page);
  await to(server, page, "locks");
  const sheet = page.locator(".scroll").first();
  await expect(sheet.getByRole("row", { name: "gpu-pool" })).toContainText(/semaphore of 3/);
  expect(await sheet.evaluate((s) => s.scrollWidth - s.clientWidth)).toBe(0);
  await expect(page.getByRole("button", { name: "In use, 5 min" })).toBeInViewport({ ratio: 1 });
});

test("a dialog's × stays beside its title on 320 pixels", async ({ page, server }) => {
  await page.setViewportSize({ width: 320, height: 640 });
  const held = await server.acquire("narrow:1", { holder: "reports-nightly-7", ttl_seconds: 60 });
  await enter(server, page);
  await to(server, page, "locks/demo/narrow%3A1");
  await page.getByRole("button", { name: /^Revoke/ }).click();
  const dialog = page.getByRole("dialog");
  const title = await dialog.getByRole("heading", { level: 2 }).first().boundingBox();
  const shut = await dialog.getByRole("button", { name: "Close", exact: true }).boundingBox();
  expect(shut?.y).toBeLessThan((title?.y ?? 0) + (title?.height ?? 0));
  expect((shut?.x ?? 0) + (shut?.width ?? 0)).toBeLessThanOrEqual(320);
  await server.release("narrow:1", held.token);
});

test("a phone shows which page is open, and why something was done", async ({ page, server }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await server.revoke("phone:1", "its node fell into the lake");
  await enter(server, page);
  const strip = page.getByRole("navigation", { name: "Pages" });
  for (const name of ["Events", "Deadlocks", "Closures", "Tenants", "Webhooks", "Audit"]) {
    await to(server, page, name === "Deadlocks" ? "orders" : name.toLowerCase());
    const link = strip.getByRole("link", { name, exact: true });
    await expect(link).toHaveAttribute("aria-current", "page");
    await expect(link).toBeInViewport({ ratio: 0.98 }); // parts of a pixel are lost at the end
    await expect(strip).toHaveAttribute("data-before");
  }
  await expect(strip).not.toHaveAttribute("data-after"); // the last one
  await expect(page.getByText("its node fell into the lake").first()).toBeInViewport({ ratio: 1 });
});
