// swagger-typescript-api.
import { Api } from "./swagger-typescript-api/api.js";
import { check, base, token, name } from "./check.js";

const api = new Api({ baseUrl: base, baseApiParams: { headers: { Authorization: `Bearer ${token}` } } });
const lock = name("swagger-typescript-api");
const as = (lockToken: string) => ({ headers: { Authorization: `Bearer ${token}`, "Lock-Token": lockToken } });

const first = (await api.locks.acquireLock(lock, { mode: "semaphore", limit: 1, metadata: { job: "nightly" } })).data;
const fence: number = first.fence;
check("fence", fence > 0 && first.metadata?.job === "nightly");
const refused = await api.locks.acquireLock(lock, { mode: "semaphore", limit: 1 }).catch((r) => r);
check("refused", refused.status === 423 && refused.error.waiting === 0);
check("mismatch", (await api.locks.acquireLock(lock, {}).catch((r) => r)).error.in_use.limit === 1);
check("renewed", (await api.locks.renewLock(lock, as(first.token))).data.state === "held");
check("released", (await api.locks.releaseLock(lock, as(first.token))).status === 204);
check("gone", (await api.locks.releaseLock(lock, as(first.token)).catch((r) => r)).status === 410); // it reads no body there
