// What vectors cannot express.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import {
  Cancelled,
  Fencepost,
  FencepostError,
  InvalidRequest,
  LockLost,
  NoAnswer,
} from "@fencepost/client";
import { entry, Faked } from "./fake.js";

const brief = 1.5; // seconds of a lease; its deadline is 0.25 s earlier
const beyond = 1300; // milliseconds

const gone = () => new Response(null, { status: 204 });

/** Keeps the event loop from running, as a long computation does. */
function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

test("after a blocked event loop, check says that the lock is lost before work goes on", async () => {
  await using faked = new Faked(() => entry(brief));
  const held = await faked.client.tryLock("orders:42");
  held.check();
  const before = faked.requests.length;
  block(beyond);
  assert.equal(held.signal.aborted, false);
  assert.throws(() => held.check(), { name: "LockLost", reason: "deadline" });
  assert(held.signal.reason instanceof LockLost);
  assert.equal(held.signal.reason, held.lost);
  await assert.rejects(held.release(), LockLost);
  assert.equal(faked.requests.length, before);
});

test("after a blocked event loop, no renewal is sent", async () => {
  await using faked = new Faked(() => entry(brief));
  const held = await faked.client.tryLock("orders:42");
  const before = faked.requests.length;
  block(beyond);
  await sleep(50);
  assert(held.signal.aborted);
  assert.equal(faked.requests.length, before);
});

/** How a program ends that has a lock, and runs some lines more. */
function program(lines: string): { status: number | null; milliseconds: number } {
  const began = performance.now();
  const text = `
    import { Fencepost } from "@fencepost/client";
    const entry = { id: "e", state: "held", token: "t", ttl_seconds: 60, fence: 7 };
    const fetch = async (_, { method }) =>
      method === "DELETE" ? new Response(null, { status: 204 }) : Response.json(entry);
    const fencepost = new Fencepost("http://a", "T", { fetch, log: () => {} });
    const held = await fencepost.lock("orders:42");
    ${lines}`;
  const args = ["--input-type=module", "--eval", text];
  const { status } = spawnSync(process.execPath, args, { timeout: 1500, stdio: "ignore" });
  return { status, milliseconds: performance.now() - began };
}

const skip = "Deno" in globalThis ? "Deno has other arguments" : false;

test("a process ends after a release, and after close", { skip }, () => {
  assert.equal(program("await held.release();").status, 0);
  assert.equal(program("await fencepost.close();").status, 0);
});

test("a held lock keeps its process alive", { skip }, () => {
  assert.equal(program("").status, null); // killed after the timeout
});

test("await using releases at the end, and hides no error", async () => {
  await using faked = new Faked((method) => (method === "DELETE" ? gone() : entry(30)));
  await assert.rejects(
    async () => {
      await using held = await faked.client.lock("orders:42");
      assert.equal(held.fence, 7);
      throw new RangeError("of the work");
    },
    { message: "of the work" },
  );
  assert.equal(faked.requests.at(-1)?.method, "DELETE");
});

test("a failed release is logged and does not hide the error of the work", async () => {
  const refused = () => Response.json({ code: "token_mismatch", title: "no" }, { status: 403 });
  await using faked = new Faked((method) => (method === "DELETE" ? refused() : entry(30)));
  const work = () => {
    throw new RangeError("of the work");
  };
  await assert.rejects(faked.client.withLock("orders:42", {}, work), { message: "of the work" });
  assert.match(String(faked.logged), /could not be released .* fence|could not be released/);
});

test("withLock reports a loss that the work did not notice, and one that stopped it", async () => {
  await using faked = new Faked(() => entry(brief));
  const lost = { name: "LockLost", reason: "deadline" };
  await assert.rejects(
    faked.client.withLock("orders:42", {}, () => block(beyond)),
    lost,
  );
  let renewals = 0;
  await using silent = new Faked(() =>
    renewals++ ? new Promise<Response>(() => {}) : entry(brief),
  );
  await assert.rejects(
    silent.client.withLock("orders:42", {}, ({ signal }) => sleep(5000, undefined, { signal })),
    lost,
  );
});

test("the signal of withLock cancels the work, which then releases", async () => {
  await using faked = new Faked((method) => (method === "DELETE" ? gone() : entry(30)));
  const controller = new AbortController();
  const { signal } = controller;
  const work = faked.client.withLock("orders:42", { signal }, async (held) => {
    controller.abort(new RangeError("no more"));
    held.signal.throwIfAborted();
  });
  await assert.rejects(work, { message: "no more" });
  assert.equal(faked.requests.at(-1)?.method, "DELETE");
});

test("a signal that is aborted before sends nothing", async () => {
  await using faked = new Faked(() => entry(30));
  const signal = AbortSignal.abort(new RangeError("before"));
  const cancelled = faked.client.lock("orders:42", { signal });
  await assert.rejects(cancelled, (error: Cancelled) => {
    assert(error instanceof Cancelled);
    assert.equal((error.cause as Error).message, "before");
    return true;
  });
  assert.equal(faked.requests.length, 0);
});

test("a callback that throws does not end the renewals", async () => {
  const asked = { since: "2026-01-02T15:04:05.000Z", by: "w2", waiting: 1, wished_at: "" };
  await using faked = new Faked(() => entry(brief, { release_requested: asked }));
  const held = await faked.client.tryLock("orders:42", {
    onReleaseRequested: () => {
      throw new Error("of the callback");
    },
  });
  await sleep(1200);
  held.check();
  assert.equal(faked.logged.length, 1);
});

test("secrets are in no text that a client makes", async () => {
  const drained = {
    code: "draining",
    title: "The replica is shutting down",
    may_have_taken_effect: false,
    entry: { id: "e1", token: "lock-secret", ttl_seconds: 30 },
  };
  let answers = 0;
  await using faked = new Faked(
    (method) =>
      method === "POST" && answers++ > 0 ? Response.json(drained, { status: 503 }) : entry(30),
    { retryFor: 0.1 },
  );
  const held = await faked.client.tryLock("orders:42");
  const error = await faked.client.tryLock("orders:43").catch((e: unknown) => e);
  assert(error instanceof FencepostError);
  const deep = { depth: 10, showHidden: true };
  const text = [faked.client, held, error].map((value) => inspect(value, deep)).join();
  assert.doesNotMatch(text + JSON.stringify([faked.client, held, error]), /secret/);
});

test("what no request can have is refused when a client is made, and never quoted", () => {
  const refused = (run: () => unknown) => {
    assert.throws(run, (error) => {
      assert(error instanceof InvalidRequest, `${error}`);
      assert.doesNotMatch(inspect(error, { depth: 10 }), /secret/);
      return true;
    });
  };
  for (const token of ["", " \n", "secret\nvalue", "secret\u00fc", 5 as never]) {
    refused(() => new Fencepost("http://a", token));
  }
  const hosts = ["user:secret@a", "a/?secret", "a?", "a#secret", "a:secret", "a b/secret"];
  const bad = ["", " , ", "ftp://secret", "secret", ...hosts.map((host) => `http://${host}`)];
  for (const url of bad) {
    refused(() => new Fencepost(url, "T"));
  }
  assert.throws(() => new Fencepost("http://a,http://u:p@b", "T"), /base URL 2/);
  assert.throws(() => new Fencepost(undefined, "T"), /FENCEPOST_URL/);
  assert.throws(() => new Fencepost("http://a", undefined), /FENCEPOST_TOKEN/);
  refused(() => new Fencepost("http://a", "T", { retries: 3 } as never));
  refused(() => new Fencepost("http://a", "T", { retryFor: Number.NaN }));
});

test("blanks, line breaks and commas around URLs and tokens are dropped", async () => {
  const seen: string[] = [];
  const fetch = async (url: unknown, init: RequestInit = {}) => {
    seen.push(`${url} ${new Headers(init.headers).get("Authorization")}`);
    return Response.json({});
  };
  for (const token of ["T\n", () => "T\r\n"]) {
    await using client = new Fencepost(" http://a/ ,, ", token, { fetch });
    await client.look("x");
  }
  assert.deepEqual(seen, ["http://a/locks/x Bearer T", "http://a/locks/x Bearer T"]);
});

test("options that are unknown or cannot be sent fail before a request", async () => {
  await using faked = new Faked(() => entry(30));
  const { client } = faked;
  const bad: object[] = [
    { ttl: Number.NaN },
    { ttl: "10" },
    { ttl: -1 },
    { timeout: 5 },
    { wait: null },
  ];
  bad.push({ wait: Number.POSITIVE_INFINITY }, { margin: "1" }, { limit: 1.5 }, { signal: 5 });
  for (const options of bad) {
    const refused = { name: "InvalidRequest", code: "invalid_request" };
    await assert.rejects(client.lock("a", options), refused);
    await assert.rejects(
      client.withLock("a", options, () => {}),
      refused,
    );
    await assert.rejects(client.asyncAcquire("a", options), refused);
    await assert.rejects(
      client.lead("a", options, () => {}),
      refused,
    );
  }
  const refused = { code: "invalid_request" };
  await assert.rejects(client.tryLock("a", { wait: 5 } as never), refused);
  await assert.rejects(client.lockSet(["a"], { mode: "shared" } as never), refused);
  await assert.rejects(client.lockSet([{ name: "a", modes: "shared" } as never]), refused);
  await assert.rejects(client.lock(undefined as never), refused);
  await assert.rejects(client.look("a", { timeout: 5 } as never), refused);
  await assert.rejects(client.adopt("a", "sec\nret"), refused);
  const metadata = { count: 5n } as never;
  await assert.rejects(client.lock("a", { metadata }), refused);
  await assert.rejects(client.withLock("a", {}, undefined as never), refused);
  assert.equal(faked.requests.length, 0);
});

test("a header that cannot be sent is final, and not in the error", async () => {
  const server = createServer((_, response) => response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const isNode = !("Deno" in globalThis || "Bun" in globalThis);
  const refused = isNode ? [{ Expect: "secret" }] : []; // others send it
  const headers: object[] = [{ a: "secret\nvalue" }, { "a b": "secret" }, ...refused];
  for (const header of headers) {
    await using client = new Fencepost(`http://127.0.0.1:${port}`, "T", {
      propagate: (given) => void Object.assign(given, header),
      retryFor: 1,
    });
    const error = await client.tryLock("a").catch((e: unknown) => e);
    assert(error instanceof InvalidRequest, `${error}`);
    assert.doesNotMatch(inspect(error, { depth: 10 }), /secret/);
  }
  server.close();
  await using client = new Fencepost("http://a", () => "secret\nvalue", {
    fetch: async () => assert.fail("sent"),
  });
  const error = await client.look("a").catch((e: unknown) => e);
  assert(error instanceof InvalidRequest);
  assert.doesNotMatch(inspect(error, { depth: 10 }), /secret/);
});

test("a row of failures warns once, and its error has the address and the cause", async () => {
  const port = await unusedPort();
  const urls = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}/b`];
  const lines: string[] = [];
  await using client = new Fencepost(urls, "bearer-secret", {
    retryFor: 1,
    log: (message, { url, error }) => lines.push(`${message} ${url} ${error}`),
  });
  const error = await client.look("orders:42").catch((e: unknown) => e);
  assert(error instanceof NoAnswer);
  assert.match(error.message, new RegExp(`http://127.0.0.1:${port}.*(ECONNREFUSED|refused)`));
  assert(error.cause instanceof Error);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", new RegExp(`http://127.0.0.1:${port} .*(ECONNREFUSED|refused)`));
  assert.doesNotMatch(inspect([error, lines], { depth: 10 }), /secret/);
});

test("after an answer, the next failure warns again", async () => {
  let fails = true;
  await using faked = new Faked(() => {
    fails = !fails;
    return fails ? Response.json({}, { status: 404 }) : Promise.reject(new Error("cut"));
  });
  await assert.rejects(faked.client.look("a"), { status: 404 });
  await assert.rejects(faked.client.look("a"), { status: 404 });
  assert.equal(faked.logged.length, 2);
});

test("the reason deadline says since when no renewal succeeded, and why", async () => {
  await using faked = new Faked((method) =>
    method === "PUT" ? Promise.reject(new Error("no route to host")) : entry(brief),
  );
  const held = await faked.client.tryLock("orders:42");
  await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
  assert.match(
    `${held.lost}`,
    /deadline: no renewal has succeeded for 1\.\d s; .*http:\/\/a: no route/,
  );
  assert(held.lost?.cause instanceof NoAnswer);
  assert(faked.logged.some((line) => line.includes("no route to host")));
});

test("a log that fails costs no renewal", async () => {
  let sent = 0;
  const failing = () => (sent++ === 1 ? Promise.reject(new Error("cut")) : entry(brief));
  await using faked = new Faked(failing, {
    log: () => {
      throw new Error("of the log");
    },
  });
  const held = await faked.client.tryLock("orders:42");
  await sleep(1400);
  held.check();
});

test("looking whether a lock is lost changes nothing", async () => {
  await using faked = new Faked(() => entry(brief));
  const held = await faked.client.tryLock("orders:42");
  block(beyond);
  assert.equal(held.lost?.reason, "deadline");
  assert.equal(held.signal.aborted, false);
  assert.equal(faked.logged.length, 0);
  assert.throws(() => held.check(), LockLost);
  assert(held.signal.aborted);
});

test("names of results are in camel case, but those of metadata", async () => {
  const holder = { holder: "w1", fence: 7, expires_at: "x", metadata: { job_id: "5" } };
  const refused = { code: "lock_held", title: "no", holders: [holder], request_id: "r1" };
  await using faked = new Faked((method) =>
    method === "GET"
      ? Response.json({ holders: [holder] })
      : Response.json(refused, { status: 423 }),
  );
  const { holders } = await faked.client.look("a");
  const expected = { holder: "w1", fence: 7, expiresAt: "x", metadata: { job_id: "5" } };
  assert.deepEqual(holders, [expected]);
  const error = (await faked.client.tryLock("a").catch((e: unknown) => e)) as FencepostError;
  assert.deepEqual([error.problem.holders, error.requestId], [[expected], "r1"]);
});

test("401 and 403 have classes, and options of withLock may be left out", async () => {
  let status = 401;
  await using faked = new Faked((method) =>
    method === "DELETE" ? gone() : status ? Response.json({ code: "c" }, { status }) : entry(30),
  );
  await assert.rejects(faked.client.lock("a"), { name: "Unauthenticated", code: "c" });
  status = 403;
  await assert.rejects(faked.client.lock("a"), { name: "Forbidden" });
  status = 0;
  assert.equal(await faked.client.withLock("a", ({ fence }) => fence), 7);
  assert.equal(await faked.client.lead("a", ({ fence }) => fence), 7);
  assert.equal(await faked.client.withLock(["a", { name: "b" }], ({ name }) => name), "a,b");
});

test("close ends events and waits of leaders", async () => {
  const faked = new Faked(() => new Promise<Response>(() => {}), {
    fetch: (_, init) =>
      new Promise((_, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      }),
  });
  const events = faked.client.events().next();
  const leads = faked.client.lead("a", () => {});
  await sleep(10);
  const ends = [assert.rejects(events, Cancelled), assert.rejects(leads, Cancelled)];
  await Promise.all([...ends, faked.client.close()]);
  await assert.rejects(faked.client.events().next(), Cancelled);
  await assert.rejects(faked.client.adopt("a", "t"), Cancelled);
});

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("a token comes from a function for each request, and one that hangs is no answer", async () => {
  let calls = 0;
  const fetch = async (_: unknown, init: RequestInit = {}) =>
    Response.json({ token: new Headers(init.headers).get("Authorization") });
  await using client = new Fencepost("http://a", () => `T${++calls}`, { fetch });
  assert.deepEqual(await client.look("a"), { token: "Bearer T1" });
  assert.deepEqual(await client.look("a"), { token: "Bearer T2" });
  await using hangs = new Fencepost("http://a", () => new Promise<string>(() => {}), {
    fetch,
    retryFor: 0.2,
  });
  await assert.rejects(hangs.look("a"), NoAnswer);
});

test("a redirect is not followed: the other server would get the token of the lock", async () => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    response.writeHead(307, { Location: "/elsewhere" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await using client = new Fencepost(`http://127.0.0.1:${port}/base/`, "T");
  await assert.rejects(client.look("orders:42"), { status: 307, code: "" });
  assert.deepEqual(paths, ["/base/locks/orders:42"]);
  server.closeAllConnections();
  server.close();
});

test("a name that would be another path is refused", async () => {
  await using faked = new Faked(() => entry(30));
  for (const name of ["..", ".", ""]) {
    await assert.rejects(faked.client.look(name), { code: "invalid_name" });
    await assert.rejects(faked.client.tryLock(name), { code: "invalid_name" });
  }
  await faked.client.look("a/../b?c#d");
  assert.equal(faked.requests[0]?.url, "http://a/locks/a%2F..%2Fb%3Fc%23d");
  assert.equal(faked.requests.length, 1);
});

test("an answer without a TTL is no entry: its lock would never end", async () => {
  const answer = () => Response.json({ id: "e1", state: "held", token: "t", fence: 7 });
  await using faked = new Faked(answer, { retryFor: 0.1 });
  await assert.rejects(faked.client.tryLock("orders:42", { ttl: 0.1 }), NoAnswer);
});

test("an answer with a fence that a number would round is no entry", async () => {
  const answer = () => {
    const text =
      '{"id": "e1", "state": "held", "token": "t", "ttl_seconds": 30, "fence": 9007199254740993}';
    return new Response(text, { status: 201 });
  };
  await using faked = new Faked(answer, { retryFor: 0.1 });
  await assert.rejects(faked.client.tryLock("orders:42"), NoAnswer);
});

test("an answer that never ends is no answer", async () => {
  const piece = new TextEncoder().encode("x".repeat(1 << 20));
  const body = () => new ReadableStream({ pull: (controller) => controller.enqueue(piece) });
  await using faked = new Faked(() => new Response(body()), { retryFor: 0.1 });
  await assert.rejects(faked.client.look("orders:42"), NoAnswer);
});

test("work may release its lock itself", async () => {
  await using faked = new Faked((method) => (method === "DELETE" ? gone() : entry(30)));
  assert.equal(await faked.client.withLock("orders:42", {}, (held) => held.release()), undefined);
  assert.equal(faked.requests.length, 2);
});

test("a reader of events that stops closes its connection", async () => {
  let closed: () => void = () => {};
  const closing = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write('id: 1-0\ndata: {"id":"1-0","type":"lock.released"}\n\n');
    response.on("close", closed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await using client = new Fencepost(`http://127.0.0.1:${port}`, "T");
  for await (const event of client.events()) {
    assert.equal(event.id, "1-0");
    break;
  }
  await closing;
  server.closeAllConnections();
  server.close();
});
