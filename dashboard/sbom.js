// Prints the npm packages in the built dashboard, in CycloneDX, the same for each build of a commit.
// npm sbom --omit=dev also omits preact, on which packages for development depend too.
import { execFileSync } from "node:child_process";

const list = JSON.parse(
  execFileSync("npm", ["sbom", "--package-lock-only", "--sbom-format=cyclonedx"], { maxBuffer: 64 << 20 }),
);
const development = (c) => c.properties.some((p) => p.name === "cdx:npm:package:development");
list.components = list.components.filter((c) => !development(c));
const kept = new Set([list.metadata.component["bom-ref"], ...list.components.map((c) => c["bom-ref"])]);
list.dependencies = list.dependencies
  .filter((d) => kept.has(d.ref))
  .map((d) => ({ ...d, dependsOn: d.dependsOn.filter((ref) => kept.has(ref)) }));
delete list.serialNumber;
delete list.metadata.timestamp;
console.log(JSON.stringify(list, null, 2));
