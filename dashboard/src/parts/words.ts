/** A span of time as people say it: 3 s, 4 min 10 s, 2 h 5 min, 3 d. */
export function span(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${trim(s.toFixed(1))} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 10) return pair(minutes, "min", Math.floor(s % 60), "s");
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** A span by the second, for what is counted by the ticker. */
export function seconds(ms: number): string {
  return span(Math.max(0, Math.floor(ms / 1000)) * 1000 || 0).replace(/^0 ms$/, "0 s");
}

function pair(a: number, unit: string, b: number, small: string): string {
  return b === 0 ? `${a} ${unit}` : `${a} ${unit} ${b} ${small}`;
}

function trim(text: string): string {
  return text.replace(/\.0$/, "");
}

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** A number with its thousands apart. */
export function count(n: number): string {
  return plain.format(n);
}

/** How often something happens, from how often it does in a second: what is seldom, in a minute. */
export function rate(n: number): { value: string; unit: string } {
  return n > 0 && n < 0.1 ? { value: count(n * 60), unit: "per minute" } : { value: count(n), unit: "per second" };
}

/** A count with what is counted: 1 lock, 2 locks. */
export function many(n: number, one: string, more = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : more}`;
}

/** The holders of a lock next to the named one: "and 2 others", or nothing. */
export function others(holding: number): string {
  return holding > 1 ? `and ${many(holding - 1, "other")}` : "";
}

/** An instant in UTC, to the second. */
export function utc(at: string | number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** The same without what is clear by itself: the seconds, and today's date. */
export function clock(at: string | number, now: number): string {
  const text = utc(at);
  return `${text.slice(text.slice(0, 10) === utc(now).slice(0, 10) ? 11 : 0, 16)} UTC`;
}

/** A word as the shell takes it. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_./:@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A text of so many characters at most: of a longer one the beginning and the end, where names differ. */
export function brief(text: string, most: number): string {
  const all = [...text];
  if (all.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${all.slice(0, most - 1 - end).join("")}…${all.slice(-end).join("")}`;
}
