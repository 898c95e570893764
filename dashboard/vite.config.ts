import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./", // wherever the server puts the page
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the policy of the page forbids what is not a file
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 200, // a browser test bounds what is loaded, compressed
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash:8].js",
        chunkFileNames: "assets/[name]-[hash:8].js",
        assetFileNames: "assets/[name]-[hash:8][extname]",
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
