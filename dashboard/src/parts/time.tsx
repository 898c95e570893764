import { now } from "../state/clock";
import { clock, seconds, utc } from "./words";

/** How long ago something was, by the second; when, on hover. */
export function Since({ at, ago = false }: { at: string; ago?: boolean }) {
  return (
    <time dateTime={at} title={utc(at)}>
      {seconds(now.value - Date.parse(at))}
      {ago ? " ago" : ""}
    </time>
  );
}

/** What is left of a lease: a bar that shrinks, and the time in words. */
export function Left({ until, ttlSeconds }: { until: string; ttlSeconds: number }) {
  const left = Date.parse(until) - now.value;
  const part = Math.min(1, Math.max(0, left / 1000 / ttlSeconds));
  const state = left <= 0 ? "over" : part < 0.2 ? "short" : "";
  return (
    <span class="stack" title={`Until ${utc(until)}`}>
      <span class="small">{left > 0 ? `${seconds(left + 999)} left` : "lease expired"}</span>
      <span class={`bar ${state}`} aria-hidden="true">
        <i style={{ transform: `scaleX(${part})` }} />
      </span>
    </span>
  );
}

/** How long until something, and if it is wanted, when that is. */
export function Until({ at, end = false }: { at: string; end?: boolean }) {
  const left = Date.parse(at) - now.value;
  return (
    <time dateTime={at} title={utc(at)}>
      {left > 0 ? `in ${seconds(left + 999)}` : "now"}
      {end && `, ${clock(at, now.value)}`}
    </time>
  );
}
