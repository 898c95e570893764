// openapi-typescript and openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./openapi-typescript.js";
import { check, base, token, name } from "./check.js";

const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } });
const path = { name: name("openapi-fetch") };

const first = await client.POST("/locks/{name}", { params: { path }, body: { ttl_seconds: 30, holder: "w1" } });
if (!first.data || first.data.state !== "held") throw new Error("not held");
const fence: number = first.data.fence; // a held entry has it for sure
check("fence", fence > 0);
const header = { "Lock-Token": first.data.token };
const second = await client.POST("/locks/{name}", { params: { path }, body: { mode: "shared" } });
check("refused", second.error?.code === "lock_held" && second.error.waiting === 0 && second.error.holders?.[0]?.fence === fence);
const look = await client.GET("/locks/{name}/entries/{id}", { params: { path: { ...path, id: first.data.id }, header } });
check("narrowed", look.data?.state === "held" && look.data.fence === fence);
const renewed = await client.PUT("/locks/{name}/renew", { params: { path, header } });
check("renewed", renewed.response.status === 200);
const list = await client.GET("/locks", { params: { query: { prefix: path.name, consistent: true } } });
check("listed", list.data?.locks.length === 1);
check("released", (await client.DELETE("/locks/{name}", { params: { path, header } })).response.status === 204);
check("gone", (await client.DELETE("/locks/{name}", { params: { path, header } })).error?.reason === "released");
