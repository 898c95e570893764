import type { Clock, Reading } from "./clock.js";
import { cancelled, type FencepostError, noAnswer } from "./errors.js";
import type { Answer } from "./transport.js";

const firstPause = 0.2; // seconds
const longestPause = 5;
const shortestPause = 0.1; // while a lock is held

/** How long a call may take, and what cancels it. */
export interface Scope {
  /** Seconds, at an instant. To read the clocks costs as much as a tenth of a request. */
  left(now: Reading): number;
  signal?: AbortSignal | undefined;
  /** The limit is the deadline of a held lock: pauses are shortened to fit. */
  held?: boolean;
}

/** Thrown by an attempt after which another one may succeed. */
export class Again {
  readonly error: FencepostError;
  readonly after: number; // seconds; 0 is as the client likes
  readonly stays: boolean; // at this URL: the server works, and refuses
  readonly goes: boolean; // nothing failed: the next attempt is due now
  readonly usual: boolean; // nothing to warn of
  readonly answer: Answer | undefined;

  constructor(
    error: FencepostError,
    how: { after?: number; stays?: boolean; goes?: boolean; usual?: boolean; answer?: Answer } = {},
  ) {
    this.error = error;
    this.after = how.after ?? 0;
    this.stays = how.stays ?? false;
    this.goes = how.goes ?? false;
    this.usual = how.usual ?? false;
    this.answer = how.answer;
  }
}

/** One attempt of a call. */
export interface Attempt {
  /** The URL of the server. */
  base: string;
  /** Seconds that it may take. */
  left: number;
  /** Before anything of it was sent. */
  begun: Reading;
}

/** The base URLs of the servers. All calls of a client use one of them until it fails. */
export class Urls {
  readonly #urls: string[];
  readonly #warn: (url: string, error: FencepostError) => void;
  #current = 0;
  #failing = false; // nothing answered since the last warning

  constructor(urls: string[], warn: (url: string, error: FencepostError) => void) {
    this.#urls = urls;
    this.#warn = warn;
  }

  get count(): number {
    return this.#urls.length;
  }

  get current(): string {
    return this.#urls[this.#current] as string;
  }

  /** Goes on to the next URL, unless another call did so meanwhile. */
  passOver(url: string): void {
    if (this.current === url) {
      this.#current = (this.#current + 1) % this.count;
    }
  }

  /** The next failure is the first of a row. */
  answered(): void {
    this.#failing = false;
  }

  /** Warns of the first of a row of failures: they may last for a minute. */
  failed(url: string, error: FencepostError): void {
    if (!this.#failing) {
      this.#failing = true;
      this.#warn(url, error);
    }
  }
}

/** The policy of repeating: which URL is next, and when. */
export class Attempts {
  readonly #urls: Urls;
  readonly #clock: Clock;
  readonly #scope: Scope;
  #url = "";
  #last: FencepostError | undefined;
  #failures = 0;
  #pauses = 0;

  constructor(urls: Urls, clock: Clock, scope: Scope) {
    this.#urls = urls;
    this.#clock = clock;
    this.#scope = scope;
  }

  /** The next attempt. Throws if no time is left for it. */
  next(): Attempt {
    const now = this.#clock.read();
    const left = this.#scope.left(now);
    if (left <= 0) {
      throw this.#last ?? noAnswer();
    }
    this.#url = this.#urls.current;
    return { base: this.#url, left, begun: now };
  }

  /** After a server that works, pauses begin short again. */
  works(): void {
    this.#pauses = 0;
  }

  /** Returns when another attempt is due, at the next URL at once, after all of them in a while. */
  async failed(error: unknown): Promise<void> {
    const { signal } = this.#scope;
    if (signal?.aborted) {
      throw cancelled(signal.reason);
    }
    if (!(error instanceof Again)) {
      throw error;
    }
    if (error.goes) {
      this.#failures = this.#pauses = 0;
      return;
    }
    this.#last = error.error;
    if (!error.stays) {
      if (!error.usual) {
        this.#urls.failed(this.#url, error.error);
      }
      this.#urls.passOver(this.#url);
      if (++this.#failures % this.#urls.count !== 0) {
        return;
      }
    }
    const left = this.#scope.left(this.#clock.read());
    // A held lock is renewed in time rather than when the server likes.
    const most = this.#scope.held ? Math.max(left / 3, shortestPause) : left;
    const seconds = Math.min(error.after || pause(this.#pauses), most);
    this.#pauses++;
    if (seconds >= left) {
      throw error.error;
    }
    await sleep(this.#clock, seconds, signal);
  }
}

/** Seconds before the next attempt, where no server says. */
export function pause(pauses: number): number {
  const most = Math.min(firstPause * 2 ** Math.min(pauses, 10), longestPause);
  return most * (0.5 + Math.random() / 2);
}

/** Throws if the signal is aborted first. */
export function sleep(clock: Clock, seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      cancel();
      reject(cancelled(signal?.reason));
    };
    const cancel = clock.timer(seconds, () => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    });
    if (signal?.aborted) {
      aborted();
    }
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
