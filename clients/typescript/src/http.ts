/**
 * Refuses requests of a holder whose lock a later one has acquired. The holder sends its fence with
 * each request; a guard keeps the greatest one of each resource.
 *
 * A request can still be overtaken between the check and what its handler writes. {@link fenceOf}
 * gives the handler the fence: compare it again in the transaction that writes.
 *
 * @module
 */

/** What a guard refused. */
export interface Stale {
  resource: string;
  presented: number;
  known: number;
}

/** How a guard checks requests of a type. */
export interface GuardOptions<R> {
  /**
   * Stores the fence if it is greater than that of the resource, and returns the greatest. It is
   * atomic, and at least as durable as the data. If it fails, the handler does not run.
   */
  raise: (resource: string, fence: number) => number | Promise<number>;
  /**
   * What a request reads or writes, or nothing for what the guard does not check. The default is
   * the path in one spelling: unescaped, in lower case as routers may ignore it, without repeated
   * slashes and one at its end. All paths to what one lock protects need the same resource.
   */
  resource?: (request: R) => string | undefined;
  /** Lets writes without a fence pass. Without it only GET, HEAD and OPTIONS do. */
  optional?: boolean;
  /** Called before a stale request is answered: start the report of it, and do not wait for it. */
  onStale?: (request: R, stale: Stale) => void;
}

/** The part of a request of Express that a guard reads. */
export interface ExpressRequest {
  method: string;
  baseUrl: string;
  path: string;
  headers: { [name: string]: string | string[] | undefined };
}

/** The part of a response of Express that a guard writes. */
export interface ExpressResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

const type = "application/problem+json";
const titles = { 400: "Bad Request", 409: "Conflict", 428: "Precondition Required" };
const safe = ["GET", "HEAD", "OPTIONS"];
const fences = new WeakMap<object, number>();

/** The fence of a request that a guard let pass, or nothing if it has none. */
export function fenceOf(request: object): number | undefined {
  return fences.get(request);
}

/**
 * A `raise` for tests, and for a single process whose data does not outlive it. It loses all fences
 * at a restart, knows none of other processes, and grows with the number of resources.
 */
export function inMemory(): (resource: string, fence: number) => number {
  const known = new Map<string, number>();
  return (resource, fence) => {
    const greatest = Math.max(fence, known.get(resource) ?? 0);
    known.set(resource, greatest);
    return greatest;
  };
}

/** Guards a handler of Fetch requests, as Cloudflare Workers, Deno, Bun and Next.js have them. */
export function guard<R extends Request, Rest extends unknown[]>(
  handler: (request: R, ...rest: Rest) => Response | Promise<Response>,
  options: GuardOptions<R>,
): (request: R, ...rest: Rest) => Promise<Response> {
  return async (request, ...rest) => {
    const resource = options.resource ?? ((r) => spelled(new URL(r.url).pathname));
    const text = request.headers.get("fence") ?? undefined;
    const refusal = await check(request, resource(request), text, options);
    if (refusal) {
      const { status, body } = refusal;
      return new Response(body, { status, headers: { "Content-Type": type } });
    }
    return handler(request, ...rest);
  };
}

/** Middleware of Express that guards what follows. */
export function guardExpress<R extends ExpressRequest>(
  options: GuardOptions<R>,
): (request: R, response: ExpressResponse, next: (error?: unknown) => void) => void {
  const guarded = async (request: R) => {
    const resource = options.resource ?? routed;
    return check(request, resource(request), request.headers.fence?.toString(), options);
  };
  return (request, response, next) => {
    guarded(request).then((refusal) => {
      if (!refusal) {
        return next();
      }
      response.statusCode = refusal.status;
      response.setHeader("Content-Type", type);
      response.end(refusal.body);
    }, next);
  };
}

/** The path that Express matches: it also takes a URL with a host, and one with a fragment. */
function routed({ baseUrl, path }: ExpressRequest): string {
  if (typeof path !== "string") {
    throw new TypeError("this is no request of Express: name its resource");
  }
  return spelled(`${baseUrl ?? ""}/${path}`);
}

/** One spelling of a path. */
function spelled(path: string): string {
  const unescaped = path.replace(/(%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
  return `/${unescaped.toLowerCase().split("/").filter(Boolean).join("/")}`;
}

interface Refusal {
  status: number;
  body: string;
}

async function check<R extends { method: string }>(
  request: R,
  resource: string | undefined,
  text: string | undefined,
  options: GuardOptions<R>,
): Promise<Refusal | undefined> {
  if (!resource || (text === undefined && (options.optional || safe.includes(request.method)))) {
    return undefined;
  }
  if (text === undefined) {
    const detail = "A write needs the header Fence: the fence of the lock that its client holds.";
    return refuse(428, "fence_required", detail);
  }
  const presented = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || !Number.isSafeInteger(presented)) {
    return refuse(400, "invalid_fence", "The header Fence is one positive integer below 2^53.");
  }
  const known = Number(await options.raise(resource, presented));
  if (!(known >= presented)) {
    throw new TypeError("raise has to return the greatest fence");
  }
  if (known > presented) {
    options.onStale?.(request, { resource, presented, known });
    return stale(presented, known);
  }
  fences.set(request, presented);
  return undefined;
}

function stale(presented: number, known: number): Refusal {
  const detail =
    `The request has the fence ${presented}, and a later holder has sent ${known}. ` +
    "The client does not hold the lock.";
  return refuse(409, "stale_fence", detail, { fence_presented: presented, fence_known: known });
}

function refuse(
  status: keyof typeof titles,
  code: string,
  detail: string,
  fields: Record<string, number> = {},
): Refusal {
  const body = JSON.stringify({ title: titles[status], status, detail, code, ...fields });
  return { status, body };
}
