import { answered, Failure } from "../api/client";
import { follow, type Message } from "../api/sse";
import { alive, type Live, patience, type Show, sleep, useShown } from "./live";
import { Picture, type Told } from "./picture";

/** How long it may take until a watch shows something, and how long it is done without one then. */
const patienceForFirst = 3000;
const withoutWatch = 30_000;

/** A watch says every 5 seconds that it is there: after two of them have not come, the server is away. */
const silence = 10_000;

/** Something that can be watched, and asked for. */
export interface Watched<T> {
  /** What is watched, as the query of `/admin/watch`. */
  query: Record<string, string | number | undefined>;
  /** The name under which the answer has its rows, if it has any. */
  list?: "locks" | "waiters" | "tenants";
  /** How often it is asked for where it cannot be watched, in milliseconds. */
  every: number;
  load: (signal: AbortSignal) => Promise<T>;
}

/**
 * Watches something while the page can be seen and is not paused: a page on the screen has one
 * stream. Where that is refused, or nothing comes through it, it is asked for every so often.
 */
export function useWatched<T>(of: Watched<T>): Live<T> {
  const path = `/admin/watch?${search(of.query)}`;
  return useShown<T>(path, (stop, show) => void watch(path, of, stop, show), of.load);
}

function search(query: Watched<unknown>["query"]): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) q.set(name, String(value));
  return q.toString();
}

/** Shows what is watched until it is stopped, whatever happens to the stream. */
export async function watch<T>(path: string, of: Watched<T>, stop: AbortSignal, show: Show<T>): Promise<void> {
  let failures = 0;
  while (!stop.aborted) {
    try {
      await once(path, of.list, stop, (value) => {
        failures = 0;
        show.value(value as T);
      });
    } catch (e) {
      if (stop.aborted) return;
      failures++;
      if (e instanceof Failure && e.code === "unreachable") show.failure(e);
      else if (!(e instanceof Failure && e.code === "out_of_step"))
        failures = (await poll(of, stop, show)) ? 0 : failures;
    }
    await sleep(patience(failures, 500), stop);
  }
}

/** Follows one stream to its end. */
async function once(
  path: string,
  list: string | undefined,
  stop: AbortSignal,
  show: (value: unknown) => void,
): Promise<void> {
  const picture = new Picture(list);
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), patienceForFirst);
  try {
    await follow(path, {
      signal: AbortSignal.any([stop, silent.signal]),
      silent: silence,
      opened: () => {},
      came: alive,
      told: (m) => {
        clearTimeout(timer);
        show(picture.take(m.event, read(m)));
      },
    });
  } catch (e) {
    if (silent.signal.aborted) throw new Failure("silent", "The server streams nothing.");
    throw e;
  } finally {
    clearTimeout(timer);
  }
}

function read(m: Message): Told {
  try {
    return JSON.parse(m.data) as Told;
  } catch {
    throw new Failure("unreadable", "The stream cannot be read.");
  }
}

/** Asks for it again and again for a while. Reports whether it was answered to the end. */
async function poll<T>(of: Watched<T>, stop: AbortSignal, show: Show<T>): Promise<boolean> {
  for (const end = Date.now() + withoutWatch; !stop.aborted && Date.now() < end; ) {
    try {
      show.value(await answered(of.load, stop));
    } catch (e) {
      if (!stop.aborted) show.failure(e);
      return false;
    }
    await sleep(of.every, stop);
  }
  return true;
}
