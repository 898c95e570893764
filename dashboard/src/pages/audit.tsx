import { useSignal } from "@preact/signals";
import { api, asked, type Failure, type PollInit, type Schemas } from "../api/client";
import { save } from "../api/save";
import { curl, Shell } from "../parts/curl";
import { TenantField } from "../parts/filter";
import { Badge, Calm, Failed, Head, Loading, Trouble } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { Turn } from "../parts/turn";
import { count, utc } from "../parts/words";
import { outcome, useLive } from "../state/live";
import { href, route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { limits } from "./limits";
import { lockPage } from "./names";

const rows = 50;

/** How far back one may look, in hours; the address has the name. */
const spans: Record<string, { name: string; hours: number }> = {
  hour: { name: "Last hour", hours: 1 },
  day: { name: "Last 24 hours", hours: 24 },
  week: { name: "Last 7 days", hours: 7 * 24 },
};

interface Filter {
  tenant?: string;
  span?: string;
  cursor?: string;
}

/** Reads the address. What makes no sense is left out. */
export function filterOf(query: URLSearchParams): Filter {
  const f: Filter = {};
  for (const name of ["tenant", "cursor"] as const) {
    const value = query.get(name);
    if (value) f[name] = value;
  }
  const span = query.get("since") ?? "";
  if (Object.hasOwn(spans, span)) f.span = span;
  return f;
}

/** The query of a filter, as it is now: an hour ago is another instant each time. */
export function queryOf({ tenant, span }: Filter, now: number): { tenant?: string; since?: string } {
  const q: { tenant?: string; since?: string } = {};
  if (tenant) q.tenant = tenant;
  const back = spans[span ?? ""];
  if (back) q.since = `${new Date(now - back.hours * 3_600_000).toISOString().slice(0, 19)}Z`;
  return q;
}

/** What operators did, and what was done to webhooks, and why. */
export function Audit() {
  const filter = filterOf(route.value.query);
  const { data, failure } = useLive(JSON.stringify(filter), 5000, (ask) => page(filter, ask));
  return (
    <>
      <Head title="Audit">
        <Export filter={filter} />
      </Head>
      <Filters filter={filter} />
      <Failed failure={failure} />
      {data ? <Records all={data.records} filtered={filter} /> : <Loading failure={failure} />}
      <Turn first="Newest" at={filter.cursor} next={data?.next_cursor} more="Earlier" />
      <Shell id="curl" line={`${curl("GET", pathOf(filter))} -H 'Accept: application/x-ndjson'`} />
    </>
  );
}

async function page(filter: Filter, ask: PollInit): Promise<Schemas["AuditPage"]> {
  const query = { ...queryOf(filter, Date.now()), limit: rows, ...(filter.cursor ? { cursor: filter.cursor } : {}) };
  const answer = await asked(api.GET("/admin/audit", { ...ask, params: { query } }));
  return answer as Schemas["AuditPage"]; // lines come only to those who ask for lines
}

function pathOf(filter: Filter): string {
  const q = new URLSearchParams(queryOf(filter, Date.now())).toString();
  return `/admin/audit${q === "" ? "" : `?${q}`}`;
}

/** All of it, and not the page alone, as a file of JSON lines. */
function Export({ filter }: { filter: Filter }) {
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const run = async (): Promise<void> => {
    busy.value = true;
    failure.value = undefined;
    try {
      await save(pathOf(filter), "application/x-ndjson", "fencepost-audit.jsonl");
    } catch (e) {
      failure.value = outcome(e);
    }
    busy.value = false;
  };
  return (
    <>
      {failure.value && <Trouble failure={failure.value} />}
      <button type="button" disabled={busy.value} onClick={run}>
        {busy.value ? "Exporting…" : "Export JSON lines"}
      </button>
    </>
  );
}

function Filters({ filter }: { filter: Filter }) {
  return (
    <search class="filters">
      <label>
        Period
        <select value={filter.span ?? ""} onChange={(e) => setQuery({ since: e.currentTarget.value, cursor: "" })}>
          <option value="">All</option>
          {Object.entries(spans).map(([key, s]) => (
            <option key={key} value={key}>
              {s.name}
            </option>
          ))}
        </select>
      </label>
      {seesAll() && <TenantField first value={filter.tenant ?? ""} set={(v) => setQuery({ tenant: v, cursor: "" })} />}
    </search>
  );
}

function Records({ all, filtered }: { all: Schemas["AuditRecord"][]; filtered: Filter }) {
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No records">
          {filtered.tenant || filtered.span
            ? "No record matches the filters above. Choose a longer period or another tenant."
            : "Changes by operators and changes of webhooks appear here. The server keeps them for 90 days."}
        </Calm>
      </div>
    );
  }
  return (
    <Table
      caption="Audit records, newest first"
      columns={["Time", "Operator", "Action", "Target", "Reason"]}
      class="cards"
    >
      {all.map((r) => (
        <Row key={r.id} of={r} />
      ))}
    </Table>
  );
}

/** A kind of action that is not here yet is shown by its name. */
const actions: Partial<Record<string, { name: string; sign: string }>> = {
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

/** Limits that were set; the others are the defaults. */
export function limitsInWords(of: Schemas["QuotaOverrides"]): string {
  const all = limits.flatMap(({ key, name, unit }) => {
    const n = of[key];
    return n == null ? [] : [`${name}: ${count(n)}${name.toLowerCase().includes(unit) ? "" : ` ${unit}`}`];
  });
  return all.length === 0 ? "all defaults" : all.join(", ");
}

/** What of a webhook, besides its receiver. */
export function webhookInWords(of: Schemas["AuditWebhook"]): string {
  if (of.delivery) return `delivery ${of.delivery}`;
  if (of.since) return `all events since ${of.since}`;
  return of.changed ? of.changed.join(", ") : "";
}

function Told({ of }: { of: Schemas["AuditWebhook"] }) {
  return (
    <>
      <span class="each">{of.id === "callbacks" ? "callbacks" : of.receiver || of.id}</span>
      <span class="under">{[webhookInWords(of), of.id === "callbacks" ? "" : of.id].filter(Boolean).join(" · ")}</span>
    </>
  );
}

function Row({ of }: { of: Schemas["AuditRecord"] }) {
  const { actor, object } = of;
  const from = [actor.tenant, actor.scope, actor.address].filter(Boolean).join(" · ");
  return (
    <tr data-row tabIndex={-1}>
      <td class="whole">
        <Since at={of.at} ago />
      </td>
      <td class="text">
        {actor.subject}
        <span class="under">{from}</span>
      </td>
      <td>
        <Badge sign={actions[of.action]?.sign ?? "·"}>{actions[of.action]?.name ?? of.action}</Badge>
      </td>
      <td class="name">
        {object.webhook && <Told of={object.webhook} />}
        {(object.webhook?.id === "callbacks" ? [] : object.locks).map((name) =>
          name.includes("*") ? (
            <span key={name} class="each">
              {name}
            </span>
          ) : (
            <a key={name} class="each" href={lockPage({ tenant: of.tenant, name })}>
              {name}
            </a>
          ),
        )}
        {of.action.startsWith("quota.") && (
          <a class="each" href={href(["tenants", of.tenant])}>
            {limitsInWords(object.quota ?? {})}
          </a>
        )}
        <span class="under">
          {of.tenant}
          {object.until && ` · until ${utc(object.until)}`}
          {object.holder !== "" &&
            ` · ${object.held ? "held" : "waited for"} by ${object.holder}, fence\u00a0${object.fence}`}
        </span>
      </td>
      <td class="text">
        {of.reason}
        <span class="under">request {of.request_id}</span>
      </td>
    </tr>
  );
}
