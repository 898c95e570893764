import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Where the API is: beside the folder of the page, whatever stands before both. */
export const base = new URL("../", document.baseURI.split("#")[0]).href.replace(/\/$/, "");

export const api = createClient<paths>({
  baseUrl: base,
  // Read at each call: tests put another one in its place.
  fetch: (request) => globalThis.fetch(request),
});

/** Failure is why something could not be asked or done, in words for a person. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
    readonly requestId = "",
    /** Of an entry that is gone: why. */
    readonly reason = "",
    /** Whether what was asked may have been done all the same. */
    readonly uncertain = false,
    /** The field of the request that is at fault, if one is. */
    readonly field = "",
  ) {
    super(message);
  }

  /** No operator is signed in, or not any more. */
  get signedOut(): boolean {
    return this.status === 401;
  }

  /** The server was not reached: there was no answer, or a proxy answered for it. */
  get away(): boolean {
    return this.status === 0 || (this.code === "unknown" && [502, 503, 504].includes(this.status));
  }

  /** The server was not reached, or can do nothing at the moment: worth trying again. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** The server answers with 304: what is on the screen is what it would send. */
export class Unchanged extends Error {}

/** What a request of a poll needs besides its parameters. */
export type PollInit = {
  signal: AbortSignal;
  fetch: (request: Request) => Promise<Response>;
};

/** Something that is asked for again and again. It sends the tag of what is on the screen. */
export class Poll {
  private shown = { url: "", tag: "" };
  private came = { url: "", tag: "" };

  readonly fetch = async (request: Request): Promise<Response> => {
    const { url, tag } = this.shown;
    if (tag !== "" && request.url === url) request.headers.set("If-None-Match", tag);
    const response = await globalThis.fetch(request);
    this.came = { url: request.url, tag: response.headers.get("ETag") ?? "" };
    return response;
  };

  /** Notes that the last answer is on the screen. */
  show(): void {
    this.shown = this.came;
  }
}

/** What openapi-fetch answers. */
interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns what was asked for, or throws a Failure. */
export async function asked<T>(answer: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>;
  try {
    got = await answer;
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw e;
    throw new Failure("unreachable", "Cannot reach the server.", 0, "", "", true);
  }
  if (got.response.ok) return got.data as T;
  if (got.response.status === 304) throw new Unchanged();
  throw failureOf(got.response.status, got.error);
}

/** How long an answer for the visible page may take, in milliseconds. */
export const patient = 8000;

/**
 * Asks for something, and gives it up once that has taken too long: a server that takes requests and answers none
 * is away, and the page reports that.
 */
export async function answered<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  stop?: AbortSignal,
  within = patient,
): Promise<T> {
  const late = new AbortController();
  const given = new Promise<never>((_, reject) => {
    late.signal.addEventListener("abort", () =>
      reject(new Failure("unreachable", "The server does not answer.", 0, "", "", true)),
    );
    stop?.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
  });
  const timer = setTimeout(() => late.abort(), within);
  try {
    return await Promise.race([ask(stop ? AbortSignal.any([stop, late.signal]) : late.signal), given]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads a problem document. Anything else, as of a proxy, is reported by its status. */
export function failureOf(status: number, body: unknown): Failure {
  const problem = typeof body === "object" && body !== null ? (body as Partial<Schemas["Problem"]>) : {};
  const text = problem.detail ?? problem.title ?? `The server answered with status ${status}.`;
  const uncertain = problem.may_have_taken_effect ?? (problem.code === undefined && status >= 500);
  const { code = "unknown", request_id = "", reason, field } = problem;
  return new Failure(code, text, status, request_id, reason, uncertain, field);
}
