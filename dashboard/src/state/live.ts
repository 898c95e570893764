import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Failure } from "../api/client";
import { heard } from "./clock";
import { lost } from "./session";

/** Nothing on the screen changes by itself while this is true. */
export const paused = signal(false);

/** Whether the server answers. */
export const connection = signal<"live" | "lost">("live");

/** What is on the screen, where it comes from the server again and again. */
export interface Live<T> {
  data: T | undefined;
  failure: Failure | undefined;
  refresh: () => void;
}

/** Notes how a request went, and returns the failure if it is one to be shown. */
export function outcome(e: unknown): Failure {
  const f = e instanceof Failure ? e : new Failure("unexpected", "Something went wrong on this page.");
  if (f.status === 0 && f.code === "unreachable") connection.value = "lost";
  lost(f);
  return f;
}

/** How long to wait before asking again: longer each time, with some chance in it. */
export function patience(failures: number, every: number): number {
  if (failures === 0) return every;
  return Math.min(15_000, Math.max(every, 1000 * 2 ** (failures - 1))) * (0.75 + Math.random() / 2);
}

/**
 * Loads something, and loads it again every so often, while the page can be seen and is not
 * paused. Another key is another thing, of which nothing is known yet.
 */
export function useLive<T>(key: string, every: number, load: (signal: AbortSignal) => Promise<T>): Live<T> {
  const data = useSignal<{ key: string; value: T } | undefined>(undefined);
  const failure = useSignal<Failure | undefined>(undefined);
  const again = useSignal(0);
  const stopped = paused.value;
  useEffect(() => {
    const stop = new AbortController();
    const have = (): boolean => data.peek()?.key === key;
    void repeat(
      stop.signal,
      every,
      () => stopped && have(),
      async () => {
        try {
          const value = await load(stop.signal);
          if (stop.signal.aborted) return true;
          note(value);
          connection.value = "live";
          failure.value = undefined;
          data.value = { key, value };
          return true;
        } catch (e) {
          if (stop.signal.aborted) return true;
          failure.value = outcome(e);
          return false;
        }
      },
    );
    return () => stop.abort();
  }, [key, every, stopped, again.value]);
  const current = data.value?.key === key ? data.value.value : undefined;
  return { data: current, failure: failure.value, refresh: () => again.value++ };
}

/** Every answer to operators tells the server's time. */
function note(value: unknown): void {
  if (typeof value === "object" && value !== null && "server_now" in value && typeof value.server_now === "string") {
    heard(value.server_now);
  }
}

async function repeat(
  stop: AbortSignal,
  every: number,
  rest: () => boolean,
  once: () => Promise<boolean>,
): Promise<void> {
  let failures = 0;
  while (!stop.aborted) {
    if (rest()) return;
    if (!document.hidden) failures = (await once()) ? 0 : failures + 1;
    await sleep(patience(failures, every), stop);
  }
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
