import { expect } from "@playwright/test";
import { test } from "./fixture";

test("the page of the HTTP API sends an acquire with a token that one pastes", async ({ page, server }) => {
  const refused: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") refused.push(message.text());
  });
  await page.goto(`${server.url}/docs/`);

  await page.getByRole("button", { name: "Authorize" }).click();
  const dialog = page.locator(".modal-ux");
  await dialog.getByRole("textbox").fill(server.token);
  await dialog.getByRole("button", { name: "Apply credentials" }).click();
  await dialog.getByRole("button", { name: "Close" }).click();

  const operation = page.locator("#operations-locks-acquireLock");
  await operation.locator(".opblock-summary-control").click();
  await operation.getByRole("button", { name: "Try it out" }).click();
  await operation.getByPlaceholder("name").fill("docs:1");
  await operation.getByRole("button", { name: "Execute" }).click();

  const answer = operation.locator(".live-responses-table");
  await expect(answer.locator(".response-col_status").last()).toContainText("201");
  await expect(answer).toContainText('"state": "held"');
  expect(refused, "nothing on the page breaks its policy").toEqual([]);
  expect(page.url(), "the token is not in the address").not.toContain(server.token);
});

test("without a token the page of the HTTP API shows why the server refused", async ({ page, server }) => {
  await page.goto(`${server.url}/docs/#/locks/acquireLock`);
  const operation = page.locator("#operations-locks-acquireLock");
  await operation.getByRole("button", { name: "Try it out" }).click();
  await operation.getByRole("button", { name: "Execute" }).click();
  await expect(operation.locator(".live-responses-table")).toContainText("unauthenticated");
});
