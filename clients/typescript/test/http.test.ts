// Plays the cases of clients/vectors/http with a handler of Fetch requests and with Express.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request as rawRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  fenceOf,
  type GuardOptions,
  guard,
  guardExpress,
  inMemory,
  type Stale,
} from "@fencepost/client/http";
import express from "express";

/** Explained in clients/vectors/http/README.md. */
interface Case {
  name: string;
  optional?: boolean;
  resource?: string;
  fails?: boolean;
  requests: Wanted[];
}

interface Wanted {
  send: string;
  fence?: string[];
  status: number;
  handler?: number;
  code?: string;
  presented?: number;
  known?: number;
}

interface Service {
  send(method: string, path: string, headers: Headers): Promise<Response>;
  close(): Promise<void>;
}

const file = join(process.env.VECTORS ?? "", "http", "fence.json");
const cases = JSON.parse(readFileSync(file, "utf8")) as Case[];
assert(cases.length >= 8);

class Seen {
  ran = 0;
  stale: Stale[] = [];

  handle(request: object): string {
    this.ran++;
    return `${fenceOf(request) ?? 0}`;
  }

  options<R>(of: Case, path: (request: R) => string): GuardOptions<R> {
    return {
      raise: of.fails ? () => Promise.reject(new Error("no store")) : inMemory(),
      ...(of.resource === "account" && { resource: (request: R) => account(path(request)) }),
      optional: of.optional ?? false,
      onStale: (_, stale) => this.stale.push(stale),
    };
  }
}

function account(path: string): string | undefined {
  const [, accounts, id] = path.split("/");
  return accounts === "accounts" ? id : undefined;
}

async function fetchHandler(of: Case, seen: Seen): Promise<Service> {
  const options = seen.options<Request>(of, (request) => new URL(request.url).pathname);
  const handler = guard((request: Request, suffix: string) => {
    return new Response(seen.handle(request) + suffix);
  }, options);
  return {
    send: (method, path, headers) =>
      handler(new Request(`http://service${path}`, { method, headers }), "").catch(
        () => new Response(null, { status: 500 }),
      ),
    close: () => Promise.resolve(),
  };
}

async function expressApp(of: Case, seen: Seen): Promise<Service> {
  const app = express();
  app.set("env", "test"); // logs no errors
  app.use(guardExpress(seen.options<express.Request>(of, (request) => request.path)));
  app.use((request, response) => {
    response.send(seen.handle(request));
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    send: (method, path, headers) => fetch(`http://127.0.0.1:${port}${path}`, { method, headers }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

for (const [framework, start] of Object.entries({ fetchHandler, expressApp })) {
  for (const of of cases) {
    test(`${framework}: ${of.name}`, async () => {
      const seen = new Seen();
      const service = await start(of, seen);
      for (const wanted of of.requests) {
        await play(wanted, service, seen);
      }
      await service.close();
    });
  }
}

const spellings = [
  "/accounts/7/",
  "/Accounts/7",
  "/accounts/%37?force=1",
  "http://service/accounts/7",
  "/accounts/7#now",
  "/accounts/7/#now",
  "//accounts/7",
];

/** Sends a request line as it is: fetch would change it. */
async function sendRaw(port: number, path: string, fence: string): Promise<string> {
  const options = { port, path, method: "PUT", headers: { Fence: fence } };
  const request = rawRequest(options).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  return `${path} ${response.statusCode}`;
}

for (const mount of ["/", "/accounts"]) {
  test(`no spelling of a path passes the guard of Express at ${mount}`, async () => {
    const app = express();
    const router = express.Router({ mergeParams: true });
    router.use(guardExpress({ raise: inMemory() }));
    router.put(mount === "/" ? "/accounts/:id" : "/:id", (_, response) => void response.send(""));
    app.use(mount, router);
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.equal(await sendRaw(port, "/accounts/7", "9"), "/accounts/7 200");
    for (const path of spellings) {
      const answer = await sendRaw(port, path, "8");
      assert.match(answer, / (409|404)$/);
    }
    server.closeAllConnections();
    server.close();
  });
}

test("no spelling of a path passes the guard of Fetch handlers", async () => {
  const handler = guard((_: Request) => new Response(), { raise: inMemory() });
  const put = (path: string, fence: string) =>
    handler(new Request(new URL(path, "http://service"), { method: "PUT", headers: { fence } }));
  assert.equal((await put("/accounts/7", "9")).status, 200);
  for (const path of spellings.filter((spelling) => !spelling.startsWith("//"))) {
    assert.equal((await put(path, "8")).status, 409, path);
  }
});

test("a request that is not of Express has no resource by default", async () => {
  const request = { method: "PUT", url: "/7", headers: { fence: "9" } } as never;
  const guarded = guardExpress({ raise: inMemory() });
  const error = await new Promise((resolve) => guarded(request, {} as never, resolve));
  assert(error instanceof TypeError);
});

test("without a fence from the store, the handler does not run", async () => {
  for (const known of [undefined, null, "", 8, Number.NaN]) {
    const seen = new Seen();
    const handler = guard((request: Request) => new Response(seen.handle(request)), {
      raise: () => known as number,
    });
    const request = new Request("http://service/7", { method: "PUT", headers: { Fence: "9" } });
    await assert.rejects(handler(request), TypeError);
    assert.equal(seen.ran, 0);
  }
});

async function play(wanted: Wanted, service: Service, seen: Seen): Promise<void> {
  seen.ran = 0;
  seen.stale = [];
  const [method = "", path = ""] = wanted.send.split(" ");
  const headers = new Headers((wanted.fence ?? []).map((text) => ["Fence", text]));
  const answer = await service.send(method, path, headers);
  const text = await answer.text();
  const at = `${JSON.stringify(wanted)}: ${answer.status} ${text}`;
  assert(answer.status === wanted.status || (wanted.status === 500 && answer.status > 500), at);
  assert.equal(seen.ran, wanted.status === 200 ? 1 : 0, at);
  if (wanted.handler !== undefined) {
    assert.equal(text, `${wanted.handler}`, at);
  }
  if (wanted.code !== undefined) {
    assert.equal(answer.headers.get("Content-Type"), "application/problem+json", at);
    const { status, code, fence_presented, fence_known } = JSON.parse(text);
    const fields = [status, code, fence_presented, fence_known];
    assert.deepEqual(fields, [wanted.status, wanted.code, wanted.presented, wanted.known], at);
  }
  const stale = seen.stale.map(({ presented, known }) => ({ presented, known }));
  const { presented, known } = wanted;
  assert.deepEqual(stale, known === undefined ? [] : [{ presented, known }], at);
}
