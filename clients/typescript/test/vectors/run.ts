import { isDeepStrictEqual } from "node:util";
import {
  type AsyncOptions,
  Cancelled,
  Fencepost,
  FencepostError,
  type FencepostEvent,
  type Held,
  type HoldOptions,
  LockLost,
  type Pending,
  verifyWebhook,
} from "@fencepost/client";
import { type At, includes, type Outcome, type Step, type Vector } from "./format.js";
import { Server } from "./server.js";
import { settle, World } from "./world.js";

type Got = Omit<Outcome, "at" | "error">;

/** Plays one vector in virtual time, and returns what went wrong. */
export async function play(vector: Vector, bodies: Record<string, unknown>): Promise<string[]> {
  const run = new Run(vector, bodies);
  await run.play();
  return run.faults;
}

/** A body as the client gives it to programs: in camel case. */
function received(body: unknown): unknown {
  const text = JSON.stringify(body).replace(/"[a-z_]+":/g, (name) =>
    name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
  );
  return JSON.parse(text);
}

class Run {
  readonly faults: string[] = [];
  readonly #vector: Vector;
  readonly #world: World;
  readonly #server: Server;
  readonly #client: Fencepost;
  readonly #held = new Map<string, Held>();
  readonly #pending = new Map<string, Pending>();
  readonly #cancels = new Map<string, AbortController>();
  readonly #resigns = new Map<string, () => void>();
  readonly #lost = new Set<Step>();
  readonly #asked = new Map<Step, number>();
  readonly #ended = new Set<Step>();
  readonly #unended = new Map<Step, Got>(); // what calls gave that go on
  #closed = false;
  #over = false;

  constructor(vector: Vector, bodies: Record<string, unknown>) {
    const { urls = ["http://a"], retry_for, clock, traceparent } = vector.config ?? {};
    this.#vector = vector;
    this.#world = new World(clock !== "wall");
    this.#server = new Server(this.#world, vector, bodies, (fault) => this.#fail(fault));
    this.#client = new Fencepost(urls, "T", {
      clock: this.#world,
      fetch: this.#server.fetch,
      log: () => {},
      retryFor: retry_for,
      propagate: (headers) => {
        if (traceparent) {
          headers.traceparent = traceparent;
        }
      },
    });
  }

  #fail(fault: string): void {
    this.faults.push(`${this.#world.now.toFixed(3)}: ${fault}`);
  }

  async play(): Promise<void> {
    for (const step of this.#vector.steps) {
      await this.#world.runUntil(step.at);
      await this.#do(step);
      await settle();
    }
    await this.#world.runUntil(this.#vector.until);
    this.#server.end();
    this.#over = true;
    for (const step of this.#vector.steps) {
      this.#finish(step);
    }
    for (const cancel of this.#cancels.values()) {
      cancel.abort();
    }
    void this.#client.close();
    await settle();
  }

  /** Compares what is still open at the end. */
  #finish(step: Step): void {
    const { result, lost, release_requested = [] } = step;
    const label = `${step.do} ${step.as ?? step.of ?? ""}`;
    if (!this.#ended.has(step) && (result?.at !== undefined || result?.error)) {
      this.#fail(`${label} does not end`);
    } else if (!this.#ended.has(step) && result) {
      this.#values(label, result, this.#unended.get(step) ?? {});
    }
    if (lost && !this.#lost.has(step)) {
      this.#fail(`${label} is not lost`);
    }
    if ((this.#asked.get(step) ?? 0) < release_requested.length) {
      this.#fail(`${label}: its release is not asked for`);
    }
  }

  async #do(step: Step): Promise<void> {
    switch (step.do) {
      case "pause":
        this.#world.now += step.seconds ?? 0;
        break;
      case "suspend":
        this.#world.slept += step.seconds ?? 0;
        break;
      case "wall":
        this.#world.set += step.seconds ?? 0;
        break;
      case "cancel":
        this.#cancels.get(step.of ?? "")?.abort();
        break;
      case "resign":
        this.#resigns.get(step.of ?? "")?.();
        break;
      case "verify": // the only call that waits for something else than the seams
        await this.#call(step);
        break;
      default:
        void this.#call(step);
    }
  }

  /** Runs a call beside the others, and compares how it ends. */
  async #call(step: Step): Promise<void> {
    const got: Got = {};
    this.#unended.set(step, got);
    let error: unknown;
    try {
      await this.#begin(step, got);
    } catch (thrown) {
      error = thrown;
    }
    if (this.#over) {
      return;
    }
    this.#ended.add(step);
    const label = `${step.do} ${step.as ?? step.of ?? ""}`;
    if (this.#closed && !step.result && error instanceof Cancelled) {
      return; // close ended it
    }
    if (!step.result) {
      this.#fail(`${label} ends and has no result: ${error}`);
    } else if (!includes(step.result.at, this.#world.now)) {
      this.#fail(`${label} ends with ${error}, want it at ${step.result.at}`);
    }
    this.#values(label, step.result ?? {}, got);
    this.#error(label, step.result?.error, error);
  }

  /** Compares the values that are named. */
  #values(label: string, want: Outcome, got: Got): void {
    for (const [name, value] of Object.entries(want)) {
      const is = got[name as keyof Got];
      if (name !== "at" && name !== "error" && !isDeepStrictEqual(value, is)) {
        this.#fail(`${label}: ${name} is ${JSON.stringify(is)}, want ${JSON.stringify(value)}`);
      }
    }
  }

  #error(label: string, want: Record<string, unknown> | undefined, error: unknown): void {
    if (!want || !(error instanceof FencepostError)) {
      if (want || error) {
        this.#fail(`${label}: error ${error}, want ${JSON.stringify(want)}`);
      }
      return;
    }
    const is: Record<string, unknown> = {
      code: error.code,
      status: error.status,
      reason: error instanceof LockLost ? error.reason : error.problem.reason,
      revoke_reason: error instanceof LockLost ? error.revokeReason : undefined,
      request_id: error.requestId,
      retry_after: error.retryAfter,
      holder: error.problem.holders?.[0]?.holder,
    };
    for (const [name, value] of Object.entries(want)) {
      if (is[name] !== value) {
        this.#fail(`${label}: ${error} has ${name} ${is[name]}, want ${value}`);
      }
    }
  }

  #options(step: Step): AsyncOptions {
    const controller = new AbortController();
    this.#cancels.set(step.as ?? "", controller);
    return {
      ttl: step.ttl,
      wait: step.wait,
      mode: step.mode,
      limit: step.limit,
      holder: step.holder,
      metadata: step.metadata,
      requestRelease: step.request_release,
      margin: step.margin,
      atLeast: step.at_least,
      permits: step.permits,
      onlyNewest: step.only_newest,
      callbackUrl: step.callback_url,
      signal: controller.signal,
      onReleaseRequested: ({ by }) => {
        const at = this.#asked.get(step) ?? 0;
        this.#asked.set(step, at + 1);
        const want = step.release_requested?.[at];
        if (want?.by !== by || !includes(want.at, this.#world.now)) {
          this.#fail(`${by} asks for the release, want ${JSON.stringify(want)}`);
        }
      },
    };
  }

  #holding(step: Step): HoldOptions & { signal?: AbortSignal | undefined } {
    const { margin, onReleaseRequested, signal } = this.#options(step);
    return { margin, onReleaseRequested, signal };
  }

  async #begin(step: Step, got: Got): Promise<unknown> {
    const client = this.#client;
    const { name = "", of = "", claims = [] } = step;
    switch (step.do) {
      case "lock":
        return this.#hold(step, got, client.lock(name, this.#options(step)));
      case "try_lock":
        return this.#hold(step, got, client.tryLock(name, this.#options(step)));
      case "lock_set":
        return this.#hold(step, got, client.lockSet(claims, this.#options(step)));
      case "try_lock_set":
        return this.#hold(step, got, client.tryLockSet(claims, this.#options(step)));
      case "lock_any":
        return this.#hold(step, got, client.lockAny(claims, step.any, this.#options(step)));
      case "try_lock_any":
        return this.#hold(step, got, client.tryLockAny(claims, step.any, this.#options(step)));
      case "claim": {
        const event = received(this.#server.body(step.event)) as FencepostEvent;
        return this.#hold(step, got, client.claim(event, this.#holding(step)));
      }
      case "async": {
        const pending = await client.asyncAcquire(name, this.#options(step));
        this.#pending.set(step.as ?? "", pending);
        got.id = pending.id;
        return;
      }
      case "wait": {
        const signal = this.#options(step).signal as AbortSignal;
        return this.#hold(step, got, (this.#pending.get(of) as Pending).wait({ signal }));
      }
      case "leave":
        return this.#pending.get(of)?.leave();
      case "release":
        return this.#held.get(of)?.release();
      case "check":
        return this.#held.get(of)?.check();
      case "adopt":
        return this.#hold(step, got, client.adopt(name, step.token ?? "", this.#holding(step)));
      case "close":
        this.#closed = true;
        return client.close();
      case "lead":
        return this.#lead(step, got);
      default:
        return this.#ask(step, got);
    }
  }

  async #ask(step: Step, got: Got): Promise<unknown> {
    const { name = "", resource = "" } = step;
    switch (step.do) {
      case "look": {
        const { fence, waiting } = await this.#client.look(name);
        Object.assign(got, { fence, waiting });
        return;
      }
      case "list": {
        const { prefix = "", state = "held" } = step;
        got.names = [];
        for await (const lock of this.#client.list({ prefix, state })) {
          got.names.push(lock.name);
        }
        return;
      }
      case "events":
        return this.#events(step, got);
      case "stale_write": {
        const { fence_presented: fencePresented = 0, fence_known: fenceKnown = 0 } = step;
        return this.#client.staleWrite(name, { fencePresented, fenceKnown, resource });
      }
      case "verify": {
        const { headers = {}, payload = "", secrets = [], now = 0 } = step;
        const event = await verifyWebhook(headers, payload, secrets, new Date(now * 1000));
        Object.assign(got, { id: event.id, type: event.type });
        return;
      }
      default:
        throw new Error(`there is no step ${step.do}`);
    }
  }

  async #hold(step: Step, got: Got, acquire: Promise<Held>): Promise<void> {
    const held = await acquire;
    this.#held.set(step.as ?? "", held);
    Object.assign(got, { fence: held.fence, fences: held.fences });
    held.signal.addEventListener("abort", () => {
      const { reason } = held.signal;
      if (this.#over || !(reason instanceof LockLost) || reason.reason === "closed") {
        return;
      }
      this.#lost.add(step);
      const { lost } = step;
      const same = lost?.reason === reason.reason && lost.revoke_reason === reason.revokeReason;
      if (!same || !includes(lost.at, this.#world.now)) {
        this.#fail(`${step.as} is lost: ${reason}, want ${JSON.stringify(lost)}`);
      }
    });
  }

  async #lead(step: Step, got: Got): Promise<void> {
    got.terms = [];
    const resigned = new Promise<void>((resolve) => this.#resigns.set(step.as ?? "", resolve));
    const want = step.result?.terms ?? [];
    const seen = got.terms;
    await this.#client.lead(step.name ?? "", this.#options(step), async (held) => {
      const expected = want[seen.length];
      const term = { fence: held.fence, at: this.#at(expected?.at), ended: undefined as At };
      seen.push(term);
      const lost = new Promise((resolve) => held.signal.addEventListener("abort", resolve));
      await Promise.race([resigned, lost]);
      term.ended = this.#at(expected?.ended);
    });
  }

  async #events(step: Step, got: Got): Promise<void> {
    got.events = [];
    const { types, locks, after } = step;
    const { signal } = this.#options(step);
    for await (const { id, type } of this.#client.events({ types, locks, after, signal })) {
      const want = step.result?.events?.[got.events.length];
      got.events.push({ at: this.#at(want?.at), id, type });
    }
  }

  /** The wanted time if it is now, and otherwise now. */
  #at(want: At): At {
    return includes(want, this.#world.now) ? want : this.#world.now;
  }
}
