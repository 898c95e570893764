import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programs, root } from "./server";

/** Builds the server and what makes traffic, once for all tests. Returns what removes them. */
export default function build(): () => void {
  const page = join(root, "dashboard", "dist", "index.html");
  if (!existsSync(page)) throw new Error("the dashboard is not built: make dashboard");
  const dir = mkdtempSync(join(tmpdir(), "dashboard-programs-"));
  const named = process.env.SCREENSHOTS ? ["-ldflags", "-X main.version=v0.1.0"] : []; // "dev" would confuse readers
  execFileSync("go", ["build", ...named, "-o", `${dir}/`, "./cmd/api", "./test/seed"], { cwd: root, stdio: "inherit" });
  process.env[programs] = dir;
  return () => rmSync(dir, { recursive: true, force: true });
}
