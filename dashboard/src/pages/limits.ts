import type { Schemas } from "../api/client";
import { count } from "../parts/words";

export type Limit = keyof Schemas["QuotaNumbers"];

/** What a tenant's use is limited by, in words: what it counts, the most that it can be set to, and whether each replica has its own. */
export const limits: readonly { key: Limit; name: string; unit: string; most: number; each?: true }[] = [
  { key: "held_locks", name: "Held locks", unit: "locks", most: 10_000_000 },
  { key: "waiting", name: "Waiting", unit: "entries", most: 10_000_000 },
  { key: "waiting_per_lock", name: "Waiting for one lock", unit: "entries", most: 10_000_000 },
  { key: "sets", name: "Sets, held or waiting", unit: "sets", most: 10_000_000 },
  { key: "places", name: "Queue positions", unit: "positions", most: 10_000_000 },
  { key: "metadata_bytes", name: "Metadata", unit: "bytes", most: 1_073_741_824 },
  { key: "async_renewals_per_second", name: "Renewals of waiting async entries", unit: "per second", most: 1_000_000 },
  { key: "webhooks", name: "Webhooks", unit: "webhooks", most: 1000 },
  { key: "event_streams", name: "Event streams", unit: "streams", most: 2000, each: true },
  { key: "requests_per_second", name: "Requests", unit: "per second", most: 1_000_000, each: true },
  { key: "renewals_per_second", name: "Renewals", unit: "per second", most: 1_000_000, each: true },
  { key: "releases_per_second", name: "Releases", unit: "per second", most: 1_000_000, each: true },
  { key: "webhook_attempts_per_second", name: "Webhook attempts", unit: "per second", most: 1_000_000, each: true },
];

export type Fields = Partial<Record<Limit, string>>;

/** What stands in the fields of what was set. */
export function fieldsOf(overrides: Schemas["QuotaOverrides"] = {}): Fields {
  return Object.fromEntries(Object.entries(overrides).map(([key, n]) => [key, String(n)]));
}

/** Whether a limit is a rate: a replica's bucket has the tokens of one second. */
export function isRate(limit: Limit): boolean {
  return ["requests_per_second", "renewals_per_second", "releases_per_second", "webhook_attempts_per_second"].includes(
    limit,
  );
}

/** The limits that the fields name; an empty one is the default. Undefined if one is none. */
export function overridesIn(fields: Fields): Schemas["QuotaOverrides"] | undefined {
  if (wrongIn(fields) !== undefined) return undefined;
  const out: Partial<Record<Limit, number>> = {};
  for (const { key } of limits) {
    const text = fields[key]?.trim() ?? "";
    if (text !== "") out[key] = Number(text);
  }
  return out;
}

/** Whether what stands in the field of a limit is none. */
export function isWrong({ key, most }: { key: Limit; most: number }, fields: Fields): boolean {
  const text = fields[key]?.trim() ?? "";
  return text !== "" && !(/^\d+$/.test(text) && Number(text) <= most);
}

/** What is wrong with the first of the fields that is none, in words. */
export function wrongIn(fields: Fields): string | undefined {
  const wrong = limits.find((l) => isWrong(l, fields));
  return wrong && `${wrong.name}: enter a whole number from 0 to ${count(wrong.most)}.`;
}
