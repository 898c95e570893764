import { isDeepStrictEqual } from "node:util";
import { type At, type Exchange, includes, type Vector } from "./format.js";
import type { World } from "./world.js";

/** The scripted server: a fetch that compares requests with the exchanges, and answers them. */
export class Server {
  readonly #world: World;
  readonly #exchanges: Exchange[];
  readonly #answered = new Map<Exchange, number>();
  readonly #bodies: Record<string, unknown>;
  readonly #bound = new Map<string, unknown>(); // what $names stand for
  readonly #fail: (fault: string) => void;
  #next = 0;
  #over = false;

  constructor(
    world: World,
    vector: Vector,
    bodies: Record<string, unknown>,
    fail: (fault: string) => void,
  ) {
    this.#world = world;
    this.#exchanges = vector.server;
    this.#bodies = bodies;
    this.#fail = fail;
  }

  /** What a body's name stands for. */
  body(body: unknown): unknown {
    if (typeof body === "string" && !(body in this.#bodies)) {
      throw new Error(`there is no body ${body}`);
    }
    return typeof body === "string" ? this.#bodies[body] : body;
  }

  /** Fails for each exchange that is due and did not come. */
  end(): void {
    const [open] = this.#exchanges.slice(this.#next);
    if (open?.during && (this.#answered.get(open) ?? 0) >= (open.least ?? 1)) {
      this.#next++;
    }
    for (const { request } of this.#exchanges.slice(this.#next)) {
      this.#fail(`the request did not come: ${request}`);
    }
    this.#over = true;
  }

  fetch = (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const exchange = this.#over ? undefined : this.#take(String(url), init);
    return new Promise((resolve, reject) => {
      const signal = init.signal as AbortSignal;
      const giveUp = () => {
        cancel();
        reject(signal.reason);
        if (exchange && !this.#over) {
          this.#givenUp(exchange);
        }
      };
      const answer = () => {
        signal.removeEventListener("abort", giveUp);
        if (exchange?.given_up !== undefined) {
          this.#fail(`not given up: ${exchange.request}`);
        }
        if (exchange?.fault === "cut") {
          reject(new TypeError("connection reset"));
        } else if (exchange) {
          resolve(this.#respond(exchange, signal));
        }
      };
      const hangs = !exchange || exchange.fault === "hang";
      const cancel = hangs ? () => {} : this.#world.timer(exchange.delay ?? 0, answer);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  };

  #givenUp(exchange: Exchange): void {
    const expected = exchange.given_up !== undefined || exchange.fault === "hang";
    if (!expected || !includes(exchange.given_up, this.#world.now)) {
      this.#fail(`given up: ${exchange.request}`);
    }
  }

  #respond(exchange: Exchange, signal: AbortSignal): Response {
    const { status = 200, answer = {}, stream, fault } = exchange;
    const body = this.body(exchange.body ?? {});
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const cut = fault === "cut-body";
    const half = cut ? text.slice(0, text.length / 2) : text;
    const chunks = stream ?? [{ after: 0, text: half }];
    const content = status === 204 ? null : this.#stream(chunks, cut, signal);
    return new Response(content, { status, headers: answer });
  }

  /** A body whose chunks come in time, and that then ends or is cut. */
  #stream(chunks: { after: number; text: string }[], cut: boolean, signal: AbortSignal) {
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        let cancel = () => {};
        const send = (at: number): void => {
          const chunk = chunks[at];
          if (!chunk) {
            signal.removeEventListener("abort", abort);
            cut ? controller.error(new TypeError("cut")) : controller.close();
            return;
          }
          const deliver = () => {
            if (chunk.text) {
              controller.enqueue(new TextEncoder().encode(chunk.text));
            }
            send(at + 1);
          };
          if (chunk.after > 0) {
            cancel = this.#world.timer(chunk.after, deliver);
          } else {
            deliver();
          }
        };
        const abort = () => {
          cancel();
          controller.error(signal.reason);
        };
        signal.addEventListener("abort", abort, { once: true });
        send(0);
      },
    });
  }

  /** Finds the exchange of a request, and compares them. */
  #take(url: string, init: RequestInit): Exchange | undefined {
    const is = `${init.method} ${url}`;
    const { now } = this.#world;
    const before = this.#exchanges[this.#next];
    if (before?.during && now > before.during[1] + 1e-9) {
      this.#next++;
      const answered = this.#answered.get(before) ?? 0;
      if (answered < (before.least ?? 1)) {
        this.#fail(`${answered} requests came: ${before.request}`);
      }
    }
    const exchange = this.#exchanges[this.#next];
    if (!exchange) {
      this.#fail(`unexpected request ${is}`);
      return undefined;
    }
    this.#answered.set(exchange, (this.#answered.get(exchange) ?? 0) + 1);
    if (!exchange.during) {
      this.#next++;
    }
    const at: At = exchange.during ?? exchange.at;
    const want = exchange.request.replace("http://*", new URL(url).origin);
    if (!sameRequest(want, is) || !includes(at, now)) {
      this.#fail(`request ${is}, want ${exchange.request} at ${JSON.stringify(at)}`);
    }
    this.#compare(exchange, init);
    return exchange;
  }

  #compare(exchange: Exchange, init: RequestInit): void {
    const sent = new Headers(init.headers);
    const want: Record<string, string | undefined> = {
      Authorization: "Bearer T",
      "Idempotency-Key": exchange.key,
      "Lock-Token": exchange.token,
      "Last-Event-ID": undefined,
      traceparent: undefined,
      "Content-Type": init.body === undefined ? undefined : "application/json",
      ...exchange.headers,
    };
    for (const [name, value] of Object.entries(want)) {
      if (!this.#matches(value ?? null, sent.get(name))) {
        this.#fail(`${exchange.request} has ${name} ${sent.get(name)}, want ${value}`);
      }
    }
    const body = init.body === undefined ? undefined : JSON.parse(String(init.body));
    if (!this.#matches(exchange.send, body)) {
      const wanted = JSON.stringify(exchange.send);
      this.#fail(`${exchange.request} sends ${init.body}, want ${wanted}`);
    }
  }

  /** Compares JSON values. A text $x is equal to what it stood for before, or to anything new. */
  #matches(want: unknown, got: unknown): boolean {
    if (typeof want === "string" && want.startsWith("$")) {
      if (this.#bound.has(want)) {
        return this.#bound.get(want) === got;
      }
      const taken = [...this.#bound.values()].includes(got);
      this.#bound.set(want, got);
      return typeof got === "string" && got !== "" && !taken;
    }
    if (typeof want !== "object" || want === null || typeof got !== "object" || got === null) {
      return want === got;
    }
    const keys = Object.keys(want).sort();
    return (
      isDeepStrictEqual(keys, Object.keys(got).sort()) &&
      Array.isArray(want) === Array.isArray(got) &&
      keys.every((key) => this.#matches(want[key as never], got[key as never]))
    );
  }
}

/** Compares methods and URLs, with the parameters of the query in any order. */
function sameRequest(a: string, b: string): boolean {
  const [pathA, queryA] = a.split("?");
  const [pathB, queryB] = b.split("?");
  const sorted = (query = "") => [...new URLSearchParams(query)].sort();
  return pathA === pathB && isDeepStrictEqual(sorted(queryA), sorted(queryB));
}
