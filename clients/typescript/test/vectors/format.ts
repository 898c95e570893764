// The format is explained in clients/vectors/README.md.
import { readFileSync } from "node:fs";
import type { Claim } from "@fencepost/client";

/** Seconds: a number is exact to 50 ms, a pair are bounds. */
export type At = number | [number, number] | undefined;

export interface Vector {
  name: string;
  about: string;
  config?: { urls?: string[]; retry_for?: number; clock?: "boot" | "wall"; traceparent?: string };
  steps: Step[];
  server: Exchange[];
  until: number;
}

export interface Step {
  at: number;
  do: string;
  as?: string;
  of?: string;
  name?: string;
  token?: string;
  claims?: Claim[];
  any?: number;
  ttl?: number;
  wait?: number;
  mode?: "exclusive" | "shared" | "semaphore";
  limit?: number;
  permits?: number;
  only_newest?: boolean;
  holder?: string;
  metadata?: Record<string, string>;
  request_release?: number;
  margin?: number;
  at_least?: number;
  callback_url?: string;
  event?: unknown;
  prefix?: string;
  state?: "held" | "contended";
  types?: string[];
  locks?: string[];
  after?: string;
  fence_presented?: number;
  fence_known?: number;
  resource?: string;
  secrets?: string[];
  headers?: Record<string, string>;
  payload?: string;
  seconds?: number;
  now?: number;
  result?: Outcome;
  lost?: { at: At; reason: string; revoke_reason?: string };
  release_requested?: { at: At; by: string }[];
}

export interface Outcome {
  at?: At;
  error?: Record<string, unknown>;
  fence?: number;
  fences?: Record<string, number>;
  id?: string;
  type?: string;
  waiting?: number;
  names?: string[];
  events?: { at: At; id: string; type: string }[];
  terms?: { fence: number; at: At; ended: At }[];
}

export interface Exchange {
  at?: At;
  during?: [number, number];
  least?: number;
  request: string;
  key?: string;
  token?: string;
  headers?: Record<string, string>;
  send?: unknown;
  delay?: number;
  status?: number;
  answer?: Record<string, string>;
  body?: unknown;
  fault?: "cut" | "cut-body" | "hang";
  given_up?: At;
  stream?: { after: number; text: string }[];
}

const fields: Record<string, string> = {
  vector: "name about config steps server until",
  config: "urls retry_for clock traceparent",
  step:
    "at do as of name token claims any ttl wait mode limit holder metadata request_release margin " +
    "at_least permits only_newest callback_url event prefix state types locks after fence_presented fence_known resource " +
    "secrets headers payload seconds now result lost release_requested",
  claim: "name mode limit permits",
  result: "at error fence fences id type waiting names events terms",
  error: "code status reason revoke_reason request_id retry_after holder",
  event: "at id type",
  term: "fence at ended",
  lost: "at reason revoke_reason",
  asked: "at by",
  exchange:
    "at during least request key token headers send delay status answer body fault given_up stream",
  chunk: "after text",
};

/** Fails on a field that the runner does not know: it would not be checked. */
function only(kind: string, value: object | undefined): void {
  const known = (fields[kind] as string).split(" ");
  for (const field of Object.keys(value ?? {})) {
    if (!known.includes(field)) {
      throw new Error(`a ${kind} has the unknown field ${field}`);
    }
  }
}

function each(kind: string, values: object[] | undefined): void {
  for (const value of values ?? []) {
    only(kind, value);
  }
}

export function readVectors(path: string): Vector[] {
  const vectors = JSON.parse(readFileSync(path, "utf8")) as Vector[];
  for (const vector of vectors) {
    only("vector", vector);
    only("config", vector.config);
    each("step", vector.steps);
    each("exchange", vector.server);
    for (const { claims, result, lost, release_requested } of vector.steps) {
      each("claim", claims);
      only("result", result);
      only("error", result?.error);
      each("event", result?.events);
      each("term", result?.terms);
      only("lost", lost);
      each("asked", release_requested);
    }
    for (const { stream } of vector.server) {
      each("chunk", stream);
    }
  }
  return vectors;
}

export function includes(at: At, seconds: number): boolean {
  const slack = 0.05 + 1e-9;
  const [first, last] = typeof at === "object" ? at : [at, at];
  return at === undefined || (seconds >= (first ?? 0) - slack && seconds <= (last ?? 0) + slack);
}
