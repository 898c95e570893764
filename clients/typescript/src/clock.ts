/** What the clocks show at an instant, in seconds, each since an origin of its own. */
export interface Reading {
  /** Stands still while the machine is suspended, on Linux. */
  monotonic: number;
  /** Like monotonic, and passes while suspended. Undefined where there is none. */
  boot: number | undefined;
  /** May be set, forward and back. */
  wall: number;
}

/** Reads the clocks and sets timers. Tests give one of their own to {@link ClientOptions.clock}. */
export interface Clock {
  read(): Reading;
  /** Calls `run` once after some seconds, unless the function that it returns is called before. */
  timer(seconds: number, run: () => void): () => void;
}

/**
 * Seconds that passed since an earlier reading. Of two clocks it believes the one by which more
 * time passed: a lock that ends too early costs a retry, one that ends too late costs data.
 * Without a boot clock, a wall clock that is set forward ends locks early.
 */
export function since(now: Reading, earlier: Reading): number {
  const other =
    now.boot !== undefined && earlier.boot !== undefined
      ? now.boot - earlier.boot
      : now.wall - earlier.wall;
  return Math.max(now.monotonic - earlier.monotonic, other);
}

const longestTimer = 2 ** 31 - 1; // milliseconds; a longer one would fire at once

/** The clocks of the machine. Its timers keep a process of Node alive while they are set. */
export function systemClock(): Clock {
  let uptime: (() => number) | undefined;
  void findUptime().then((found) => {
    uptime = found;
  });
  return {
    read: () => ({
      monotonic: performance.now() / 1000,
      boot: uptime?.(),
      wall: Date.now() / 1000,
    }),
    timer(seconds, run) {
      const timer = setTimeout(run, Math.min(Math.ceil(seconds * 1000), longestTimer));
      return () => clearTimeout(timer);
    },
  };
}

interface NodeProcess {
  platform?: string;
  release?: { name?: string };
  versions?: { bun?: string };
}

/**
 * Where `os.uptime` shows a suspension to some milliseconds: Node on Linux and Windows. Deno, Bun
 * and macOS count whole seconds, which differ from the monotonic clock all the time.
 */
async function findUptime(): Promise<(() => number) | undefined> {
  const scope = globalThis as { process?: NodeProcess; Deno?: unknown };
  const node = scope.process;
  const isNode = node?.release?.name === "node" && !node.versions?.bun && scope.Deno === undefined;
  if (!isNode || (node.platform !== "linux" && node.platform !== "win32")) {
    return undefined;
  }
  try {
    const { uptime } = await builtin<{ uptime(): number }>("node:os");
    return uptime() > 0 ? uptime : undefined;
  } catch {
    return undefined; // a bundler or a sandbox left it out
  }
}

/** A module of Node, by a name that bundlers for browsers do not follow. */
function builtin<T>(name: string): Promise<T> {
  return import(/* @vite-ignore */ /* webpackIgnore: true */ name) as Promise<T>;
}

/** WebCrypto, which is no global in Node 18. */
export async function webCrypto(): Promise<typeof globalThis.crypto> {
  return (
    globalThis.crypto ??
    (await builtin<{ webcrypto: typeof globalThis.crypto }>("node:crypto")).webcrypto
  );
}
