import { FilterField, TenantField, whole } from "../parts/filter";
import { setQuery } from "../state/route";
import { seesAll } from "../state/session";

/** How far back one may look, in hours; the address has the name. */
const spans: Record<string, { name: string; hours: number }> = {
  hour: { name: "Last hour", hours: 1 },
  day: { name: "Last 24 hours", hours: 24 },
  week: { name: "Last 7 days", hours: 7 * 24 },
};

/** What the server filters by; the address has the names. */
const fields = ["tenant", "operator", "action", "lock"] as const;

type Fields = Partial<Record<(typeof fields)[number], string>>;
type Query = Fields & { since?: string };

export interface Filter extends Fields {
  span?: string;
  cursor?: string;
}

/** Reads the address. What makes no sense is left out. */
export function filterOf(query: URLSearchParams): Filter {
  const f: Filter = {};
  for (const name of [...fields, "cursor"] as const) {
    const value = query.get(name);
    if (value) f[name] = value;
  }
  const span = query.get("since") ?? "";
  if (Object.hasOwn(spans, span)) f.span = span;
  return f;
}

/** The query of a filter, as it is now: an hour ago is another instant each time. */
export function queryOf(filter: Filter, now: number): Query {
  const q: Query = {};
  for (const name of fields) if (filter[name]) q[name] = filter[name];
  const back = spans[filter.span ?? ""];
  if (back) q.since = `${new Date(now - back.hours * 3_600_000).toISOString().slice(0, 19)}Z`;
  return q;
}

/** A kind of action that is not here yet is shown by its name. */
export const actions: Partial<Record<string, { name: string; sign: string }>> = {
  "entry.revoke": { name: "Revoked", sign: "✕" },
  "set.revoke": { name: "Revoked a set", sign: "✕" },
  "locks.close": { name: "Closed locks", sign: "‖" },
  "locks.open": { name: "Opened locks", sign: "▸" },
  "quota.set": { name: "Set a quota", sign: "≠" },
  "quota.reset": { name: "Reset a quota", sign: "=" },
  "webhook.create": { name: "Created a webhook", sign: "+" },
  "webhook.change": { name: "Changed a webhook", sign: "≠" },
  "webhook.pause": { name: "Paused a webhook", sign: "‖" },
  "webhook.resume": { name: "Resumed a webhook", sign: "▸" },
  "webhook.delete": { name: "Deleted a webhook", sign: "✕" },
  "webhook.rotate": { name: "Rotated a secret", sign: "↻" },
  "webhook.test": { name: "Tested a webhook", sign: "?" },
  "webhook.redeliver": { name: "Redelivered", sign: "↻" },
};

/** The fields above the audit. */
export function Filters({ filter }: { filter: Filter }) {
  const set = (name: string) => (v: string) => setQuery({ [name]: v, cursor: "" });
  return (
    <search class="filters">
      <FilterField
        label="Operator"
        first
        placeholder="Part of a name"
        value={filter.operator ?? ""}
        set={set("operator")}
      />
      <label>
        Action
        <select value={filter.action ?? ""} onChange={(e) => set("action")(e.currentTarget.value)}>
          <option value="">All</option>
          {Object.entries(actions).map(([key, a]) => (
            <option key={key} value={key}>
              {a?.name}
            </option>
          ))}
        </select>
      </label>
      <FilterField label="Lock" placeholder={whole} value={filter.lock ?? ""} set={set("lock")} />
      <label>
        Period
        <select value={filter.span ?? ""} onChange={(e) => set("since")(e.currentTarget.value)}>
          <option value="">All</option>
          {Object.entries(spans).map(([key, s]) => (
            <option key={key} value={key}>
              {s.name}
            </option>
          ))}
        </select>
      </label>
      {seesAll() && <TenantField value={filter.tenant ?? ""} set={set("tenant")} />}
    </search>
  );
}
