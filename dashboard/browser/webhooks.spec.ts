import { createServer, type Server as Receiver } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "@playwright/test";
import { test } from "./fixture";
import type { Server } from "./server";
import { enter, signIn, to, unhurt, violations } from "./world";

let receiver: Receiver;
let fails: boolean;
let received: { id: string; signatures: number; type: string }[];

test.beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (text) => {
      body += text;
    });
    request.on("end", () => {
      received.push({
        id: String(request.headers["webhook-id"]),
        signatures: String(request.headers["webhook-signature"]).split(" ").length,
        type: (JSON.parse(body) as { type: string }).type,
      });
      response.writeHead(fails ? 500 : 204);
      response.end(fails ? '<script>window.hurt=1</script><img src=x onerror="window.hurt=1">' : undefined);
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
});
test.afterAll(() => {
  receiver?.closeAllConnections();
  receiver?.close();
});
test.beforeEach(() => {
  fails = false;
  received = [];
});

/** Subscribes the receiver to revocations, under a path of its own. */
async function subscribe(server: Server, path: string, token = server.token): Promise<string> {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${path}`;
  const made = await server.post("/webhooks", { url, events: ["lock.revoked"] }, token);
  expect(made.status).toBe(201);
  return made.id;
}

test("what fails is seen with its attempts, and sent again", async ({ page, server }) => {
  fails = true;
  const id = await subscribe(server, "orders?<img/src=x/onerror=window.hurt=1>");
  await enter(server, page);
  await to(server, page, "webhooks");
  await page.getByRole("link", { name: "/orders" }).click();
  await server.revoke("told:1", "its node was lost in the fire");
  const row = page.getByRole("row", { name: "told:1" });
  await expect(row).toContainText("pending");
  await row.getByText(/attempt/).click();
  await expect(row).toContainText("500");
  await unhurt(page);
  const why = page.getByRole("status").filter({ hasText: "It answered 500" });
  await expect(why).toContainText(/Every attempt has failed for .*Pending deliveries: 1/);
  // What comes meanwhile does not move what is open.
  await server.revoke("told:2", "its node was lost in the fire");
  const more = page.getByRole("button", { name: "Show 1 new" });
  await expect(more).toBeVisible();
  await expect(page.getByRole("row", { name: "told:2" })).toHaveCount(0);
  await more.click();
  await expect(page.getByRole("row", { name: "told:2" })).toBeVisible();
  await expect(row.locator("details")).toHaveAttribute("open");
  expect(await violations(page)).toEqual([]);
  await page.goBack();
  await expect(page.getByRole("row", { name: "/orders" })).toContainText("failing for");
  await page.goForward();
  fails = false;
  await row.getByRole("button", { name: "again" }).click();
  await expect(row).toContainText("delivered");
  expect(new Set(received.map((r) => r.id)).size).toBe(2);
  await server.delete(`/webhooks/${id}`);
});

test("it is paused and goes on, tested, and its secret rotated and shown once", async ({ page, server }) => {
  const id = await subscribe(server, "pay");
  await enter(server, page);
  await to(server, page, `webhooks/${id}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.locator(".badge", { hasText: "paused" })).toBeVisible();
  await expect(page.getByText("keeps pending deliveries")).toBeVisible();
  await expect(page.getByRole("button", { name: "Send a test" })).toBeDisabled();
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(page.locator(".badge", { hasText: "active" })).toBeVisible();

  await page.getByRole("button", { name: "Rotate" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  await expect(dialog.locator("[data-secret]")).toHaveText(/^whsec_/);
  const secret = (await dialog.locator("[data-secret]").textContent()) ?? "";
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(page.locator("[data-secret]")).toHaveCount(0);
  expect(await page.content()).not.toContain(secret);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain(secret);
  await expect(page.getByText(/^rotated .* ago$/)).toBeVisible();

  await page.getByRole("button", { name: "Send a test" }).click();
  await expect(page.getByRole("row", { name: "webhook.test" })).toContainText("delivered");
  expect(received.map((r) => [r.type, r.signatures])).toEqual([["webhook.test", 2]]);
  await to(server, page, "audit?tenant=demo");
  const tested = page.getByRole("row", { name: "Tested a webhook" }).first();
  await expect(tested).toContainText("http://127.0.0.1");
  await expect(tested).not.toContainText("/pay");
  await expect(page.getByRole("row", { name: "Rotated a secret" }).first()).toContainText(id);
  await server.delete(`/webhooks/${id}`);
});

test("one is created with its secret shown once, tested, and deleted with a reason", async ({ page, server }) => {
  const asked: string[] = [];
  page.on("request", (r) => asked.push(r.url()));
  await enter(server, page);
  await to(server, page, "webhooks");
  await page.getByRole("button", { name: "New webhook…" }).click();
  const dialog = page.getByRole("dialog");
  const create = dialog.getByRole("button", { name: "Create webhook" });
  await expect(create).toBeDisabled();
  const url = dialog.getByLabel("URL");
  await url.fill(`http://user@127.0.0.1:${(receiver.address() as AddressInfo).port}/made`);
  await dialog.getByLabel("Locks").fill("made:*:*");
  await dialog.getByLabel("Description").fill("tells the shop");
  await dialog.getByLabel("All, also future types").uncheck();
  await expect(create).toBeDisabled();
  await dialog.getByLabel("revoked").check();
  // What the server objects to stands at its field, one after the other.
  await create.click();
  await expect(url).toHaveAttribute("aria-invalid", "true");
  await expect(url).toHaveAccessibleDescription(/^url has a user name/);
  await url.fill((await url.inputValue()).replace("user@", ""));
  await create.click();
  await expect(dialog.getByLabel("Locks")).toHaveAccessibleDescription(/^locks must be a pattern/);
  await expect(url).not.toHaveAttribute("aria-invalid", "true");
  await dialog.getByLabel("Locks").fill("made:*");
  expect(await violations(page)).toEqual([]);
  await create.click();
  const secret = (await dialog.locator("[data-secret]").textContent()) ?? "";
  expect(secret).toMatch(/^whsec_/);
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).last().click();

  // Its page follows, without the secret.
  await expect(page.getByRole("heading", { name: "/made" })).toBeVisible();
  await expect(page.getByText("tells the shop")).toBeVisible();
  await expect(page.getByText("revoked", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Send a test" }).click();
  await expect(page.getByRole("row", { name: "webhook.test" })).toContainText("delivered");
  expect(await page.content()).not.toContain(secret);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain(secret);

  await page.getByRole("button", { name: "Delete…" }).click();
  const confirm = dialog.getByRole("button", { name: "Delete webhook" });
  await dialog.getByLabel("Reason").fill("the shop has closed");
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(/to confirm/).fill("example.org");
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(/to confirm/).fill(`127.0.0.1:${(receiver.address() as AddressInfo).port}`);
  expect(await violations(page)).toEqual([]);
  await confirm.click();
  await expect(page.getByRole("heading", { name: "Webhooks", exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "/made" })).toHaveCount(0);
  await to(server, page, "audit?tenant=demo");
  await expect(page.getByRole("row", { name: "Deleted a webhook" }).first()).toContainText("the shop has closed");
  expect(asked.filter((u) => u.includes(secret))).toEqual([]);
});

test("webhooks are of the tenant that is signed in, and need their scope", async ({ page, server }) => {
  const id = await subscribe(server, "demo-only");
  await signIn(server, page, server.tokenOf("acme", "tenant-admin webhooks:write"));
  await to(server, page, "webhooks");
  await expect(page.getByText("No webhooks")).toBeVisible();
  await to(server, page, `webhooks/${id}`);
  await expect(page.getByRole("alert").first()).toBeVisible();
  await expect(page.getByText("demo-only")).toHaveCount(0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(server, page, server.tokenOf("acme", "tenant-admin"));
  await to(server, page, `webhooks/${id}`);
  await expect(page.getByText("webhooks:write")).toBeVisible();
  await server.delete(`/webhooks/${id}`);
});

test("an operator sees all tenants' webhooks, pauses one with a reason and sends again", async ({ page, server }) => {
  const tenant = "watched";
  const token = server.tokenOf(tenant, "webhooks:write locks:write tenant-admin");
  fails = true;
  const id = await subscribe(server, "s3cr3t?token=s3cr3t", token);
  await enter(server, page);
  await to(server, page, "webhooks");
  await page.getByRole("link", { name: "All tenants" }).click();
  await page.getByLabel("Tenant").fill(tenant);
  const row = page.getByRole("row", { name: tenant });
  await expect(row).toHaveCount(1);
  expect(await violations(page)).toEqual([]);
  await row.getByRole("link").click();
  await server.revoke("watched:1", "its node was lost in the fire", token, tenant);
  const delivery = page.getByRole("row", { name: "watched:1" });
  await expect(delivery).toContainText("pending");
  fails = false;
  await delivery.getByRole("button", { name: "again" }).click();
  await expect(delivery).toContainText("delivered");

  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Pause…" }).press("Enter");
  const confirm = dialog.getByRole("button", { name: "Pause deliveries" });
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel("Reason").fill("its receiver is being repaired");
  await dialog.getByText("The same with curl").click();
  await expect(dialog.locator("pre")).toContainText(`-X PATCH ${server.url}/admin/webhooks/${tenant}/${id}`);
  expect(await violations(page)).toEqual([]);
  await dialog.getByLabel("Reason").press("Enter");
  await expect(dialog).toBeHidden();
  await expect(page.locator(".badge", { hasText: "paused" })).toBeVisible();
  expect(await page.content()).not.toContain("s3cr3t");
  await to(server, page, `audit?tenant=${tenant}`);
  await expect(page.getByRole("row", { name: "Paused a webhook" })).toContainText("its receiver is being repaired");

  // Another tenant's operator sees nothing of it.
  await enter(server, page, server.tokenOf("acme", "tenant-admin"));
  await to(server, page, `webhooks/${tenant}/${id}`);
  await page.reload();
  await expect(page.getByRole("alert").first()).toContainText("own tenant");
  await to(server, page, "webhooks");
  await expect(page.getByText("No webhooks")).toBeVisible();
});
