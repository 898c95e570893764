import type { Clock } from "./clock.js";
import { errorOf, FencepostError, invalid, noAnswer } from "./errors.js";
import { Again, type Attempt, Attempts, type Scope, Urls } from "./repeat.js";
import { type Entry, entryOf, type Problem, parse } from "./wire.js";

export const requestTimeout = 10; // seconds of one attempt that does not wait for a lock
const longestAnswer = 16 << 20; // characters

/** One request, to whichever server. */
export interface Request {
  method: string;
  path: string;
  token?: string; // of the lock
  key?: string; // Idempotency-Key
  after?: string; // Last-Event-ID
  prefer?: string;
  body?: unknown;
  timeout?: number; // seconds
}

/** What a server, or a proxy in front of it, sent. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

export interface TransportOptions {
  urls: string[];
  token: string | (() => string | Promise<string>);
  fetch: typeof fetch;
  clock: Clock;
  propagate: ((headers: Record<string, string>) => void) | undefined;
  warn: (url: string, error: FencepostError) => void;
}

interface Runtime {
  Deno?: { createHttpClient?(options: { http2: boolean }): unknown };
}

// Over HTTP/2, Deno sends all requests on the 250 streams of one connection: waits would fill them.
const client = (globalThis as Runtime).Deno?.createHttpClient?.({ http2: false });

/** The fetch of the runtime. Renewals never wait for a connection that other requests have. */
export const send: typeof fetch = (url, init) =>
  globalThis.fetch(url, client ? ({ ...init, client } as RequestInit) : init);

/** Sends requests to one of the base URLs. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #urls: Urls;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#urls = new Urls(options.urls, options.warn);
  }

  /** Notes that a server works. */
  answered(status: number): void {
    if (status < 500) {
      this.#urls.answered();
    }
  }

  guard(signal: AbortSignal | undefined): Guard {
    return new Guard(this.#options.clock, signal);
  }

  /** The policy of a call. */
  attempts(scope: Scope): Attempts {
    return new Attempts(this.#urls, this.#options.clock, scope);
  }

  /** Makes attempts until one succeeds or fails for good, or the limit has come. */
  async repeat<T>(scope: Scope, run: (attempt: Attempt) => Promise<T>): Promise<T> {
    const attempts = this.attempts(scope);
    for (;;) {
      const attempt = attempts.next();
      try {
        return await run(attempt);
      } catch (error) {
        await attempts.failed(error);
      }
    }
  }

  /** Makes one attempt. Throws an {@link Again} or, if it is final, an error. */
  async try(attempt: Attempt, request: Request, signal?: AbortSignal): Promise<Answer> {
    const answer = await this.#send(attempt, request, signal).catch(failedAt(attempt.base));
    this.answered(answer.status);
    return accept(answer);
  }

  /** Like try, for a request whose answer is an entry. */
  async tryEntry(attempt: Attempt, request: Request, signal?: AbortSignal): Promise<Entry> {
    const answer = await this.try(attempt, request, signal);
    const entry = entryOf(parse(answer.text));
    if (!entry) {
      const error = noAnswer(new Error("what answered is no server"), attempt.base);
      throw new Again(error, { answer });
    }
    return entry;
  }

  async #send(
    { base, left }: Attempt,
    request: Request,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    const { timeout = requestTimeout } = request;
    const guard = this.guard(signal);
    guard.limit(Math.min(timeout, left));
    try {
      const response = await this.open(base, request, guard.signal);
      return await readAnswer(response);
    } catch (error) {
      guard.abort(); // what is left of the answer
      throw error;
    } finally {
      guard.end();
    }
  }

  /** Sends a request and returns the response when its head is there. */
  async open(base: string, request: Request, signal: AbortSignal): Promise<Response> {
    const { token } = this.#options;
    const bearer = typeof token === "string" ? token : bearerOf(await within(signal, token));
    const init = { ...this.#prepare(request, bearer), signal, redirect: "manual" as const };
    signal.throwIfAborted();
    return this.#options.fetch(base + request.path, init);
  }

  /** What fetch would refuse is refused here: its error would name the value of a header. */
  #prepare(request: Request, bearer: string): { method: string; headers: Headers; body?: string } {
    const given: Record<string, string> = {};
    try {
      this.#options.propagate?.(given);
    } catch (error) {
      throw invalid("propagate failed", error);
    }
    const { method, body } = request;
    const headers = headersOf({
      ...given,
      Authorization: `Bearer ${bearer}`,
      "Lock-Token": request.token,
      "Idempotency-Key": request.key,
      Prefer: request.prefer,
      "Last-Event-ID": request.after,
      "Content-Type": body === undefined ? undefined : "application/json",
    });
    return { method, headers, ...(body !== undefined && { body: jsonOf(body) }) };
  }
}

function headersOf(given: Record<string, string | undefined>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    try {
      if (value) headers.set(name, value);
    } catch {
      throw invalid("a header cannot be sent");
    }
  }
  return headers;
}

function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw invalid("an option cannot be sent as JSON", error);
  }
}

/** The bearer token without blanks around it, such as the line break at the end of its file. */
export function bearerOf(text: unknown): string {
  const bearer = typeof text === "string" ? text.trim() : "";
  if (!/^[!-~]+$/.test(bearer)) {
    throw invalid("the bearer token is empty, or has what a header cannot have");
  }
  return bearer;
}

const refusals = /^UND_ERR_(INVALID_ARG|NOT_SUPPORTED)$/; // of Node's fetch

/** Decides whether a request that failed is sent again. What was never sent is not. */
export function failedAt(base: string): (error: unknown) => never {
  return (error) => {
    const { cause } = error as { cause?: { code?: unknown } };
    if (typeof cause?.code === "string" && refusals.test(cause.code)) {
      throw invalid("a header cannot be sent");
    }
    throw error instanceof FencepostError ? error : new Again(noAnswer(error, base));
  };
}

export async function readAnswer(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const length = headers.get("Content-Length");
  if (Number(length) > longestAnswer) {
    throw new Error("the answer is too long");
  }
  const unpacked = length === null || headers.has("Content-Encoding"); // to an unknown length
  const text = await (unpacked && response.body ? textOf(response.body) : response.text());
  return { status, headers, text };
}

/** The text of a body whose length the server does not say. */
async function textOf(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return text + decoder.decode();
    }
    text += decoder.decode(value, { stream: true });
    if (text.length > longestAnswer) {
      throw new Error("the answer is too long");
    }
  }
}

/** Returns a success. Throws what is none: an {@link Again}, or a final error. */
export function accept(answer: Answer): Answer {
  const { status } = answer;
  if (status >= 200 && status < 300) {
    return answer;
  }
  const error = problemOf(answer);
  const after = error.retryAfter ?? 0;
  if (status === 429 && after > 0) {
    throw new Again(error, { after, stays: true, answer });
  }
  throw status >= 500 ? new Again(error, { after, answer }) : error;
}

/** The error that an answer is. One that a proxy sent has no code. */
function problemOf(answer: Answer): FencepostError {
  const { status } = answer;
  const parsed = parse(answer.text) as Problem | null | undefined;
  const title = `the answer has the status ${status}`;
  const known = typeof parsed === "object" && typeof parsed?.code === "string" && parsed.code;
  // Servers of Fencepost send seconds, and no dates.
  const retryAfter = Number(answer.headers.get("Retry-After") ?? Number.NaN);
  return errorOf(known ? { ...parsed, title: parsed.title ?? title } : { code: "", title }, {
    status,
    retryAfter: retryAfter >= 0 ? retryAfter : undefined,
  });
}

/** A signal that is aborted after a time, or with another signal. */
export class Guard {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, outer: AbortSignal | undefined) {
    this.#clock = clock;
    this.#outer = outer;
    outer?.addEventListener("abort", this.#follow);
    if (outer?.aborted) {
      this.abort();
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts after so many seconds from now, instead of when it would have. */
  limit(seconds: number): void {
    this.unlimited();
    const late = () => this.abort(new Error(`nothing came for ${seconds.toFixed(1)} s`));
    this.#cancel = this.#clock.timer(seconds, late);
  }

  unlimited(): void {
    this.#cancel?.();
  }

  abort(reason?: unknown): void {
    this.end();
    this.#controller.abort(reason);
  }

  #follow = (): void => this.abort();

  /** Aborts no more. */
  end(): void {
    this.unlimited();
    this.#outer?.removeEventListener("abort", this.#follow);
  }
}

/** What `ask` returns, unless the signal is aborted first. */
function within<T>(signal: AbortSignal, ask: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    const failed = (cause: unknown) =>
      reject(new Error("the function for the token failed", { cause }));
    Promise.resolve().then(ask).then(resolve, failed);
  });
}
