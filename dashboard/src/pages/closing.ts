/** How long locks can be closed for from here, in minutes; the server takes up to six days. */
export const spans: readonly { minutes: number; name: string }[] = [
  { minutes: 15, name: "15 minutes" },
  { minutes: 60, name: "1 hour" },
  { minutes: 4 * 60, name: "4 hours" },
  { minutes: 24 * 60, name: "1 day" },
  { minutes: 5 * 24 * 60, name: "5 days" },
];

/** When a closure ends that lasts so long from now: a full minute, so that it can be read out. */
export function untilAfter(now: number, minutes: number): string {
  const minute = 60_000;
  return new Date(Math.ceil(now / minute + minutes) * minute).toISOString();
}

/** Whether a text names locks: a name, in which one star may stand for anything. */
export function isPattern(text: string): boolean {
  return text !== "" && text.length <= 200 && /^[A-Za-z0-9._:@=+-]*(\*[A-Za-z0-9._:@=+-]*)?$/.test(text);
}
