// The client does what clients/vectors says, like those in other languages.
import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readVectors } from "./vectors/format.js";
import { play } from "./vectors/run.js";

const folder = process.env.VECTORS ?? "";
const bodies = JSON.parse(readFileSync(join(folder, "bodies.json"), "utf8"));
const report = process.env.VECTORS_REPORT;
const seen = new Set<string>();

for (const file of readdirSync(folder).filter((f) => f.endsWith(".json") && f !== "bodies.json")) {
  for (const vector of readVectors(join(folder, file))) {
    assert(!seen.has(vector.name), `there are two vectors ${vector.name}`);
    seen.add(vector.name);
    test(vector.name, async () => {
      const faults = await play(vector, bodies);
      if (report) {
        appendFileSync(report, `${vector.name}\t${faults.length === 0 ? "ok" : "failed"}\n`);
      }
      assert.deepEqual(faults, []);
    });
  }
}
assert(seen.size >= 40);
