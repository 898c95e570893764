import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { answered, Failure, Poll, type PollInit, Unchanged } from "../api/client";
import { heard, reached } from "./clock";
import { lost } from "./session";
import { forgetStore, noteStore } from "./store";

/** Nothing on the screen changes by itself while this is true. */
export const paused = signal(false);

/** Whether the page is hidden: then it asks for nothing. */
export const hidden = signal(document.hidden);
document.addEventListener("visibilitychange", () => {
  hidden.value = document.hidden;
});

/** Whether the server answers. */
export const connection = signal<"live" | "lost">("live");

/** Notes that the server has said something, be it only that it is there. */
export function alive(): void {
  reached();
  connection.value = "live";
}

/** What is on the screen, where it comes from the server again and again. */
export interface Live<T> {
  data: T | undefined;
  failure: Failure | undefined;
  refresh: () => void;
}

/** Notes how a request went, and returns the failure if it is one to be shown. */
export function outcome(e: unknown): Failure {
  const f = e instanceof Failure ? e : new Failure("unexpected", "Something went wrong on this page.");
  if (f.code === "unreachable" || (f.away && f.status !== 0)) connection.value = "lost";
  lost(f);
  return f;
}

/** How long to wait before asking again: longer each time, with some chance in it. */
export function patience(failures: number, every: number): number {
  if (failures === 0) return every;
  return Math.min(15_000, Math.max(every, 1000 * 2 ** (failures - 1))) * (0.75 + Math.random() / 2);
}

/** Where what comes from the server is put. */
interface Show<T> {
  value: (v: T) => void;
  same: () => void;
  failure: (e: unknown) => void;
}

/** How often a page polls what operators look at, in milliseconds. */
export const second = 1000;

/**
 * Loads something, and loads it again every so often, while the page can be seen and is not paused.
 * For another key nothing is known yet: it is loaded once even then.
 */
export function useLive<T>(key: string, every: number, load: (ask: PollInit) => Promise<T>): Live<T> {
  const data = useSignal<{ key: string; value: T } | undefined>(undefined);
  const failure = useSignal<Failure | undefined>(undefined);
  const again = useSignal(0);
  const stopped = paused.value;
  const unseen = hidden.value;
  useEffect(() => {
    const stop = new AbortController();
    const unless = (then: () => void): void => {
      if (!stop.signal.aborted) then();
    };
    const same = (): void => {
      alive();
      failure.value = undefined;
    };
    const show: Show<T> = {
      same: () => unless(same),
      value: (value) =>
        unless(() => {
          note(value);
          noteStore(key, value);
          same();
          data.value = { key, value };
        }),
      failure: (e) =>
        unless(() => {
          failure.value = outcome(e);
        }),
    };
    const enough = (): boolean => stopped && data.peek()?.key === key;
    if (!unseen && !enough()) void repeat(stop.signal, every, enough, show, load);
    return () => stop.abort();
  }, [key, stopped, unseen, again.value]);
  useEffect(() => () => forgetStore(key), [key]);
  const current = data.value?.key === key ? data.value.value : undefined;
  return { data: current, failure: failure.value, refresh: () => again.value++ };
}

/** Every answer to operators tells the server's time. */
function note(value: unknown): void {
  if (typeof value === "object" && value !== null && "server_now" in value && typeof value.server_now === "string") {
    heard(value.server_now);
  }
}

async function repeat<T>(
  stop: AbortSignal,
  every: number,
  enough: () => boolean,
  show: Show<T>,
  load: (ask: PollInit) => Promise<T>,
): Promise<void> {
  const poll = new Poll();
  for (let failures = 0; !stop.aborted && !enough(); ) {
    try {
      const value = await inTurn(stop, () => answered((signal) => load({ signal, fetch: poll.fetch }), stop));
      poll.show();
      show.value(value);
      failures = 0;
    } catch (e) {
      failures = e instanceof Unchanged ? 0 : failures + 1;
      if (e instanceof Unchanged) show.same();
      else show.failure(e);
    }
    if (!enough()) await sleep(patience(failures, every), stop);
  }
}

/** When the requests before have been answered. */
let before: Promise<unknown> = Promise.resolve();

/** Sends the requests of a page one after the other: a server that is slow has one at a time. */
async function inTurn<T>(stop: AbortSignal, ask: () => Promise<T>): Promise<T> {
  const mine = before.then(() => {
    stop.throwIfAborted();
    return ask();
  });
  before = mine.catch(() => {});
  return mine;
}

/** Waits, but not beyond the abort, and no longer than until the page is seen again. */
export function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      stop.removeEventListener("abort", done);
      document.removeEventListener("visibilitychange", seen);
      resolve();
    };
    const seen = (): void => {
      if (!document.hidden) done();
    };
    const timer = setTimeout(done, ms);
    stop.addEventListener("abort", done);
    document.addEventListener("visibilitychange", seen);
  });
}

/** A value that is kept in the browser, if that keeps anything. */
export function kept(name: string, initial: string): Signal<string> {
  const key = `fencepost-${name}`;
  let value = initial;
  try {
    value = localStorage.getItem(key) ?? initial;
  } catch {
    // Storage is off: it lasts as long as the page.
  }
  const s = signal(value);
  s.subscribe((v) => {
    try {
      localStorage.setItem(key, v);
    } catch {
      // As above.
    }
  });
  return s;
}
