import { hostname } from "node:os";
import { expect } from "@playwright/test";
import { test } from "./fixture";
import { attack, enter, to, unhurt } from "./world";

test("a cell says how many waited, and leads to what happened then", async ({ page, server }) => {
  const warm = server.tokenOf("warm", "tenant-admin locks:write");
  const held = await server.acquire("hot:1", { holder: attack, ttl_seconds: 120 }, warm);
  expect(held.status).toBe(201);
  for (const holder of ["w1", "w2"]) {
    await server.acquire("hot:1", { holder, ttl_seconds: 60, wait_seconds: 60, async: true }, warm);
  }
  await enter(server, page);
  await to(server, page, "contention?tenant=warm");
  const cell = page.getByRole("link", { name: /^hot:1: .* on average from .* UTC/ }).first();
  await expect(cell).toBeVisible();
  await expect(page.getByText("seen by")).toBeVisible();
  await expect(page.getByRole("list", { name: "Waiters on average" })).toContainText("3 to 10");
  await expect(page.getByRole("img", { name: /^Waiting, requests: .* waiting now/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Held/ })).toBeVisible();

  await page.getByRole("link", { name: "hot:1", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await expect(cell).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/locks\/warm\/hot%3A1\?at=/);
  const past = page.getByRole("region", { name: /History from/ });
  await expect(past.locator(".past")).toContainText("w1");
  await past.getByRole("button", { name: "Show latest" }).click();
  await expect(page.getByRole("region", { name: "History", exact: true })).toContainText("<img src=x");
  await server.release("hot:1", held.token, warm);
});

test("what an address says is text", async ({ page, server }) => {
  await enter(server, page);
  const evil = encodeURIComponent(attack);
  for (const hash of [
    `contention?tenant=${evil}`,
    `locks/demo/x?at=${evil}`,
    `closures?close=${evil}&tenant=${evil}`,
  ]) {
    await to(server, page, hash);
    await expect(page.getByText("Loading")).toHaveCount(0);
    await unhurt(page);
  }
  await expect(page.getByRole("dialog").getByLabel("Locks")).toHaveValue(attack);
});

test("tenants are listed with what they use, and an operator of one sees that one", async ({ page, server }) => {
  const busy = server.tokenOf("busy", "tenant-admin locks:write");
  await server.acquire("busy:1", { ttl_seconds: 120 }, busy);
  await server.acquire("idle:1", { ttl_seconds: 120 });
  await enter(server, page);
  await to(server, page, "tenants");
  await expect(page.getByRole("row", { name: "busy" })).toContainText("1 of 200,000 positions");
  await expect(page.getByRole("row", { name: "demo" })).toBeVisible();
  await enter(server, page, busy);
  await page.reload();
  await expect(page.getByRole("row", { name: "busy" })).toBeVisible();
  await expect(page.getByRole("row", { name: "demo" })).toHaveCount(0);
});

test("a replica is named by its host wherever its id is shown, to operators of all tenants alone", async ({
  page,
  server,
}) => {
  const one = server.tokenOf("one", "tenant-admin locks:write");
  await enter(server, page);
  for (const hash of ["contention", "tenants", "tenants/demo"]) {
    await to(server, page, hash);
    await expect(page.getByText(new RegExp(`seen by ${hostname()}, replica [A-Z0-9]{26}`))).toBeVisible();
  }
  await to(server, page, "");
  const row = page.getByRole("table", { name: "Replicas that serve the store" }).locator("tbody tr");
  await expect(row).toContainText(new RegExp(`${hostname()} serves this page[A-Z0-9]{26}`));
  await enter(server, page, one);
  await to(server, page, "contention");
  await page.reload();
  await expect(page.getByText(/seen by replica [A-Z0-9]{26}/)).toBeVisible();
  await expect(page.getByText(hostname())).toHaveCount(0);
});
