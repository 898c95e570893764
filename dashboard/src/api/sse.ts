import { base, Failure, failureOf } from "./client";

/** Message is one server-sent event. */
export interface Message {
  id: string;
  event: string;
  data: string;
}

/** The longest line that is kept: what is longer is no message of our server's. */
const longest = 4 << 20;

/** Parses a stream of server-sent events, piece by piece. */
export class Parser {
  private rest = "";
  private data: string[] = [];
  private event = "";
  private id = "";

  constructor(private readonly tell: (m: Message) => void) {}

  /** The id of the newest message or comment, from where to go on. */
  get lastId(): string {
    return this.id;
  }

  push(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > longest) throw new Failure("unreadable", "The event stream cannot be read.");
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) this.tell({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
      this.data = [];
      this.event = "";
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id") this.id = value;
  }
}

/** In a stream of events the server says something every 15 seconds. What is silent for longer has been cut somewhere. */
const silence = 45_000;

/**
 * Follows a stream until it ends or the signal aborts it. It is read with fetch, not with an
 * EventSource, which does not say why it was refused. `came` is called for whatever comes, comments
 * too. A stream in which nothing comes for 45 seconds counts as cut. Returns the last id.
 */
export async function follow(
  path: string,
  options: {
    signal: AbortSignal;
    lastId?: string;
    opened: () => void;
    came?: () => void;
    told: (m: Message) => void;
  },
): Promise<string> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (options.lastId) headers["Last-Event-ID"] = options.lastId;
  const cut = new AbortController();
  const signal = AbortSignal.any([options.signal, cut.signal]);
  let timer = setTimeout(() => cut.abort(), silence);
  try {
    const response = await fetch(base + path, { headers, signal, cache: "no-store" });
    if (!response.ok || response.body === null) {
      throw failureOf(response.status, await response.json().catch(() => null));
    }
    options.opened();
    const parser = new Parser(options.told);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parser.lastId;
      clearTimeout(timer);
      timer = setTimeout(() => cut.abort(), silence);
      options.came?.();
      parser.push(value);
    }
  } catch (e) {
    // What breaks off throws an error of the browser's own.
    if (options.signal.aborted || e instanceof Failure) throw e;
    throw new Failure("unreachable", "Cannot reach the server.");
  } finally {
    clearTimeout(timer);
    cut.abort(); // also if an event could not be used
  }
}
