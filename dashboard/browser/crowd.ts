import type { Server } from "./server";

/** How many locks are held, and how many entries wait for some of them: LOCKS and WAITERS say otherwise. */
export const crowd = {
  locks: Number(process.env.LOCKS ?? 5_000),
  waiters: Number(process.env.WAITERS ?? 500),
};

/** Those wait for the first of the locks, most for the first ten of these. */
const wanted = 1_000;

const inASet = 32;
const atOnce = 24;

/** The longest lease and wait, in seconds: the crowd stays while the tests look. */
const long = 3_600;

export const lockName = (i: number): string => `item:${String(i).padStart(6, "0")}`;

/** Has many locks held, in sets, and entries wait without a request for some of them. */
export async function fill(server: Server, token: string): Promise<void> {
  await each(Math.ceil(crowd.locks / inASet), async (set) => {
    const first = set * inASet;
    const locks = Array.from({ length: Math.min(inASet, crowd.locks - first) }, (_, i) => ({
      name: lockName(first + i),
    }));
    await made(server.post("/locksets", { holder: `picker-${set}`, locks, ttl_seconds: long }, token));
  });
  await each(crowd.waiters, async (i) => {
    const body = { holder: `packer-${i}`, ttl_seconds: long, wait_seconds: long, async: true };
    await made(server.acquire(lockName(queueOf(i)), body, token));
  });
}

/** For which lock one waits: every tenth for one of the first ten. */
const queueOf = (i: number): number => (i % 10 === 0 ? (i / 10) % 10 : i % wanted);

/** How many locks are waited for. */
export const contended = new Set(Array.from({ length: crowd.waiters }, (_, i) => queueOf(i))).size;

async function made(answer: ReturnType<Server["post"]>): Promise<void> {
  const { status, reason } = await answer;
  if (status !== 201 && status !== 202) throw new Error(`the crowd is refused: ${status} ${reason}`);
}

/** Does something for each number below n, for several at once. */
async function each(n: number, one: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < n) await one(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** The value that so much of the sample is not above. */
export function percentile(sample: readonly number[], part: number): number {
  const sorted = [...sample].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

/** A sample in words, in milliseconds. */
export function told(sample: readonly number[]): string {
  const ms = (part: number) => percentile(sample, part).toFixed(0);
  return `p50 ${ms(0.5)} ms, p95 ${ms(0.95)} ms, p99 ${ms(0.99)} ms, longest ${ms(1)} ms of ${sample.length}`;
}
