import { signal } from "@preact/signals";

/** How far the server's clock is ahead of the browser's, in milliseconds. */
let offset = 0;

/** The server's time, once a second: one ticker for all that counts down. */
export const now = signal(Date.now());

/** Takes over what the server says that the time is. Small differences are the way's. */
export function heard(serverNow: string): void {
  const difference = Date.parse(serverNow) - Date.now();
  if (Number.isFinite(difference) && Math.abs(difference - offset) > 250) {
    offset = difference;
    now.value = Date.now() + offset;
  }
}

/** Starts the ticker; the function that it returns stops it. */
export function tick(): () => void {
  const timer = setInterval(() => {
    now.value = Date.now() + offset;
  }, 1000);
  return () => clearInterval(timer);
}
