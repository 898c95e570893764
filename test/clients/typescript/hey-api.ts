// @hey-api/openapi-ts.
import { client } from "./hey-api/client.gen.js";
import { acquireLockSet, getLockSet, listLocks, releaseLockSet } from "./hey-api/sdk.gen.js";
import { check, base, token, name } from "./check.js";

client.setConfig({ baseUrl: base, auth: token });
const locks = [{ name: name("hey-a") }, { name: name("hey-b"), mode: "shared" as const }];

const first = await acquireLockSet({ body: { locks, wait_seconds: 0.5 } });
if (!first.data || first.data.state !== "held") throw new Error("not held");
const fences: number[] = first.data.locks.map((l) => l.fence);
check("fences", fences.every((f) => f > 0));
const second = await acquireLockSet({ body: { locks } });
check("refused", second.error?.locks?.[0]?.waiting === 0);
const headers = { "Lock-Token": first.data.token };
const look = await getLockSet({ path: { id: first.data.id }, headers });
check("narrowed", look.data?.state === "held" && look.data.locks[0]?.fence === fences[0]);
check("listed", (await listLocks({ query: { prefix: locks[0]!.name } })).response?.status === 200);
check("released", (await releaseLockSet({ path: { id: first.data.id }, headers })).response?.status === 204);
check("gone", (await releaseLockSet({ path: { id: first.data.id }, headers })).error?.reason === "released");
