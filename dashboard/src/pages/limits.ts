import type { Schemas } from "../api/client";

export type Limit = keyof Schemas["QuotaNumbers"];

/** What a tenant's use is limited by, in words: what it counts, and whether each replica has its own. */
export const limits: readonly { key: Limit; name: string; unit: string; each?: true }[] = [
  { key: "held_locks", name: "Held", unit: "locks" },
  { key: "waiting", name: "Waiting", unit: "entries" },
  { key: "waiting_per_lock", name: "Waiting for one lock", unit: "entries" },
  { key: "sets", name: "Sets, held or waiting", unit: "sets" },
  { key: "places", name: "Places in queues", unit: "places" },
  { key: "metadata_bytes", name: "Metadata", unit: "bytes" },
  { key: "async_renewals_per_second", name: "Renewals for async entries that wait", unit: "a second" },
  { key: "webhooks", name: "Webhooks", unit: "webhooks" },
  { key: "event_streams", name: "Event streams", unit: "streams", each: true },
  { key: "requests_per_second", name: "Requests", unit: "a second", each: true },
  { key: "renewals_per_second", name: "Renewals", unit: "a second", each: true },
  { key: "releases_per_second", name: "Releases", unit: "a second", each: true },
];

export type Fields = Partial<Record<Limit, string>>;

/** What stands in the fields of what was set. */
export function fieldsOf(overrides: Schemas["QuotaOverrides"] = {}): Fields {
  return Object.fromEntries(Object.entries(overrides).map(([key, n]) => [key, String(n)]));
}

/** The limits that the fields name; an empty one is the default. Undefined if one is no number. */
export function overridesIn(fields: Fields): Schemas["QuotaOverrides"] | undefined {
  const out: Partial<Record<Limit, number>> = {};
  for (const { key } of limits) {
    const text = fields[key]?.trim() ?? "";
    if (text === "") continue;
    if (!/^\d{1,10}$/.test(text)) return undefined;
    out[key] = Number(text);
  }
  return out;
}
