import { noAnswer } from "./errors.js";
import { Again, type Attempts, type Scope } from "./repeat.js";
import { accept, failedAt, type Guard, readAnswer, type Transport } from "./transport.js";
import { type FencepostEvent, parse } from "./wire.js";

const idle = 45; // seconds; a server sends something every 15
const resumeAfter = 1; // seconds after a stream that ended
const longestMessage = 1 << 20; // characters

/** Which events. By default all of the tenant, from now on. */
export interface EventFilter {
  /** Types such as `lock.released`; `events.missed` always comes. */
  types?: readonly string[] | undefined;
  /** Up to 8 patterns of names, each with at most one star. */
  locks?: readonly string[] | undefined;
  /** The id of the last event that you have dealt with, if you kept one. */
  after?: string | undefined;
  /** Ends the events with a {@link Cancelled}. */
  signal?: AbortSignal | undefined;
}

/** What is read of events, over the connections that it takes. */
export class EventStream {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #scope: Scope;
  #after: string | undefined; // the last id

  constructor(transport: Transport, filter: EventFilter, signal: AbortSignal) {
    this.#transport = transport;
    this.#path = withQuery("/events", {
      types: filter.types?.join(),
      locks: filter.locks?.join(),
    });
    this.#after = filter.after;
    this.#scope = { left: () => Number.POSITIVE_INFINITY, signal };
  }

  async *read(): AsyncGenerator<FencepostEvent, void, undefined> {
    const attempts = this.#transport.attempts(this.#scope);
    for (;;) {
      const { base } = attempts.next();
      try {
        yield* this.#follow(base, attempts);
      } catch (error) {
        await attempts.failed(error);
      }
    }
  }

  /** Reads one connection until it ends, which it throws. */
  async *#follow(
    base: string,
    attempts: Attempts,
  ): AsyncGenerator<FencepostEvent, void, undefined> {
    const guard = this.#transport.guard(this.#scope.signal);
    try {
      guard.limit(idle);
      const response = await this.#open(base, guard).catch(failedAt(base));
      this.#transport.answered(response.status);
      if (response.status !== 200) {
        accept(await readAnswer(response));
      }
      attempts.works();
      yield* this.#messages(response, guard);
    } finally {
      guard.abort(); // also closes the connection if the reader wants no more
    }
  }

  #open(base: string, guard: Guard): Promise<Response> {
    const { signal } = guard;
    const after = this.#after === undefined ? {} : { after: this.#after };
    return this.#transport.open(base, { method: "GET", path: this.#path, ...after }, signal);
  }

  async *#messages(
    response: Response,
    guard: Guard,
  ): AsyncGenerator<FencepostEvent, void, undefined> {
    const parser = new Parser();
    for await (const text of chunks(response, guard)) {
      for (const { id, data } of parser.take(text)) {
        if (data) {
          yield eventOf(data);
        }
        this.#after = id || this.#after;
      }
    }
    throw ended(new Error("the stream ended"), true);
  }
}

function ended(cause: unknown, usual = false): Again {
  return new Again(noAnswer(cause), { after: resumeAfter, usual });
}

/** The texts of a body as they come. One that is silent for too long is an error. */
async function* chunks(response: Response, guard: Guard): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  while (reader) {
    guard.limit(idle);
    const { done, value } = await reader.read().catch((error) => {
      throw ended(error);
    });
    guard.unlimited(); // the reader of the events may take its time
    if (done) {
      return;
    }
    yield decoder.decode(value, { stream: true });
  }
}

function eventOf(data: string): FencepostEvent {
  const event = parse(data) as FencepostEvent | null | undefined;
  if (typeof event?.id !== "string" || typeof event.type !== "string") {
    throw ended(new Error("a message is no event"));
  }
  return event;
}

/** Reads messages of server-sent events, which come in pieces. */
class Parser {
  #rest = ""; // of a line
  #message = { id: "", data: "" };

  /** The messages that end in the text. */
  take(text: string): { id: string; data: string }[] {
    const messages = [];
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "" || line === "\r") {
        messages.push(this.#message);
        this.#message = { id: "", data: "" };
      } else {
        this.#line(line);
      }
    }
    if (this.#rest.length + this.#message.data.length > longestMessage) {
      throw ended(new Error("a message is too long"));
    }
    return messages;
  }

  #line(line: string): void {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*?))?\r?$/.exec(line) ?? [];
    if (name === "id") {
      this.#message.id = value;
    } else if (name === "data") {
      this.#message.data += this.#message.data ? `\n${value}` : value;
    }
  }
}

/** A path with the parameters that are not empty. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}
