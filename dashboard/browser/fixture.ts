import { test as plain } from "@playwright/test";
import { Server } from "./server";

/**
 * Tests that share a server: each has tenants or names of its own there. After a test that failed
 * the next ones get a new server. Who stops the server, or must be alone on it, starts another.
 */
export const test = plain.extend<object, { server: Server }>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: the runner reads from it what the fixture needs
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  // What a test answers in the server's place may be asked for as it ends: that is no failure of it, or of the next.
  page: async ({ page }, use) => {
    await use(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  },
});
