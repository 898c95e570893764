import { signal } from "@preact/signals";

/** How far the server's clock is ahead of the browser's, in milliseconds. */
let offset = 0;

/** When something came from the server last, by the browser's clock. */
let last = Date.now();

/** The server's time, once a second: one ticker for all that counts down. */
export const now = signal(Date.now());

/** Notes that something has come from the server just now. */
export function reached(): void {
  last = Date.now();
}

/** Takes over what the server says that the time is. Small differences are the way's. */
export function heard(serverNow: string): void {
  const difference = Date.parse(serverNow) - Date.now();
  if (Number.isFinite(difference) && Math.abs(difference - offset) > 250) {
    offset = difference;
    now.value = Date.now() + offset;
  }
}

/**
 * Starts the ticker; the function that it returns stops it. While the server cannot be asked, time
 * stands where it was last heard of: leases may have been renewed since, and waits have ended.
 */
export function tick(away: () => boolean): () => void {
  const timer = setInterval(() => {
    now.value = (away() ? last : Date.now()) + offset;
  }, 1000);
  return () => clearInterval(timer);
}
