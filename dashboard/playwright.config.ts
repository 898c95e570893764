import { defineConfig } from "@playwright/test";

/** Debian's Chromium, which the tests are run with; FENCEPOST_CHROMIUM names another. */
const chromium = process.env.FENCEPOST_CHROMIUM ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "browser",
  globalSetup: "./browser/build.ts",
  workers: 2, // they wait more than they compute
  timeout: 90_000,
  expect: { timeout: 30_000 },
  reporter: [["list"]],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: chromium, args: ["--no-sandbox", "--disable-background-networking"] },
  },
});
