import { effect, signal } from "@preact/signals";

/** How far the server's clock is ahead of the browser's, in milliseconds. */
let offset = 0;

/** When something came from the server last, by the browser's clock. */
let last = Date.now();

/** Where time stands, by the server's clock, if nothing is known of what came after. */
let stands: number | undefined;

/** The server's time, once a second: one ticker for all that counts down. */
export const now = signal(Date.now());

/** For how many seconds the server has said nothing, while it is away; 0 while it is not. */
export const silentFor = signal(0);

/** Notes that something has come from the server just now. */
export function reached(): void {
  last = Date.now();
}

/** Takes over what the server says that the time is. Small differences are the way's. */
export function heard(serverNow: string): void {
  const difference = Date.parse(serverNow) - Date.now();
  if (Number.isFinite(difference) && Math.abs(difference - offset) > 250) {
    offset = difference;
    show(Date.now());
  }
}

/** Has time stand at an instant of the server's, or go on. */
export function standAt(at: number | undefined): void {
  if (at === stands) return;
  stands = at;
  show(Date.now());
}

function show(here: number): void {
  now.value = Math.min(here + offset, stands ?? Number.POSITIVE_INFINITY);
}

/**
 * Starts the ticker; the function that it returns stops it. While the server cannot be asked, time
 * stands where it was last heard of: leases may have been renewed since, and waits have ended. So it
 * does while the server does not see the store.
 */
export function tick(away: () => boolean): () => void {
  const look = (): void => {
    const here = Date.now();
    silentFor.value = away() ? Math.floor((here - last) / 1000) : 0;
    show(away() ? last : here);
  };
  const timer = setInterval(look, 1000);
  const stop = effect(look); // at once when the server goes away
  return () => {
    clearInterval(timer);
    stop();
  };
}
