// What the README's first minute promises, against servers that are killed.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";

const readme = readFileSync("node_modules/@fencepost/client/README.md", "utf8");
const [, example = ""] = /```js\n(.*?)```/s.exec(readme) ?? [];

/** Runs the README's program with a server of its own, whose process id is the first line. */
function start(
  name: string,
  program: string,
): { child: ChildProcess; lines: AsyncIterableIterator<string> } {
  mkdirSync("sample", { recursive: true });
  writeFileSync("sample/package.json", '{ "type": "commonjs" }'); // as npm init -y makes it
  writeFileSync(`sample/${name}.mjs`, program);
  const line = `echo $SERVER_PID; exec ${process.execPath} sample/${name}.mjs`;
  const child = spawn("../../with-server", ["bash", "-c", line], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
}

test("its program has at most 20 lines", () => {
  const lines = example.split("\n").filter((line) => line.trim() !== "");
  assert(lines.length > 5 && lines.length <= 20);
});

test("its program compiles under --strict", () => {
  mkdirSync("strict", { recursive: true });
  writeFileSync("strict/sample.mts", example);
  const options = "--strict --noEmit --module nodenext --target es2022 --types node";
  const roots = ["--typeRoots", "../node_modules/@types", "strict/sample.mts"];
  const tsc = ["../node_modules/typescript/bin/tsc", ...options.split(" "), ...roots];
  const { stdout, status } = spawnSync(process.execPath, tsc, { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("its program names the variable that is missing", () => {
  mkdirSync("sample", { recursive: true });
  writeFileSync("sample/missing.mjs", example);
  const { FENCEPOST_URL: _, ...env } = process.env;
  const { stderr, status } = spawnSync(process.execPath, ["sample/missing.mjs"], {
    encoding: "utf8",
    env,
  });
  assert.equal(status, 1);
  assert.match(stderr, /is FENCEPOST_URL set\?/);
});

test("its program holds and releases a lock", async () => {
  const { child, lines } = start("released", example.replace("60_000", "100"));
  const closed = once(child, "close");
  const texts: string[] = [];
  for await (const text of lines) {
    texts.push(text);
  }
  assert.deepEqual(await closed, [0, null]);
  assert.match(texts[1] ?? "", /^held with the fence \d+$/);
  assert.equal(texts[2], "released");
});

test("its program stops when the server is killed, before the lease can end", async () => {
  const ttl = 2;
  const program = example.replace("ttl: 10", `ttl: ${ttl}`);
  const { child, lines } = start("lost", program);
  const closed = once(child, "close");
  const { value: pid } = await lines.next();
  const { value: held } = await lines.next();
  assert.match(held, /^held with the fence \d+$/);
  await new Promise((resolve) => setTimeout(resolve, ttl * 1500)); // renewed meanwhile
  process.kill(Number(pid), "SIGKILL");
  const killed = performance.now();
  const { value: lost } = await lines.next();
  assert.match(lost, /^LockLost: orders:42 is lost: deadline: no renewal .* last error: /);
  assert(performance.now() - killed < ttl * 1000);
  await closed;
});
