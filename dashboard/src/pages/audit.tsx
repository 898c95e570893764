import { useSignal } from "@preact/signals";
import { api, asked, type Failure, type PollInit, type Schemas } from "../api/client";
import { save } from "../api/save";
import type { operations } from "../api/schema";
import { curl, Shell } from "../parts/curl";
import { Badge, Calm, Failed, Head, Loading, Trouble } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { Turn } from "../parts/turn";
import { count, utc } from "../parts/words";
import { outcome, useLive } from "../state/live";
import { href, route } from "../state/route";
import { actions, type Filter, Filters, filterOf, queryOf } from "./audit-filter";
import { limits } from "./limits";
import { lockPage } from "./names";

const rows = 50;

type ListQuery = NonNullable<operations["listAudit"]["parameters"]["query"]>;

/** What operators did, and what was done to webhooks, and why. */
export function Audit() {
  const filter = filterOf(route.value.query);
  // What few of very many records match costs the server a read of thousands.
  const every = filter.operator || filter.action || filter.lock ? 30_000 : 5000;
  const { data, failure } = useLive(JSON.stringify(filter), every, (ask) => page(filter, ask));
  return (
    <>
      <Head title="Audit">
        <Export filter={filter} />
      </Head>
      <Filters filter={filter} />
      <Failed failure={failure} />
      {data ? <Records of={data} filter={filter} /> : <Loading failure={failure} />}
      <Turn first="Newest" at={filter.cursor} next={data?.next_cursor} more="Earlier" />
      <Shell id="curl" line={`${curl("GET", pathOf(filter))} -H 'Accept: application/x-ndjson'`} />
    </>
  );
}

async function page(filter: Filter, ask: PollInit): Promise<Schemas["AuditPage"]> {
  const query = { ...queryOf(filter, Date.now()), limit: rows, ...(filter.cursor ? { cursor: filter.cursor } : {}) };
  // An action of the address that is none is the server's to reject.
  const answer = await asked(api.GET("/admin/audit", { ...ask, params: { query: query as ListQuery } }));
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

function Records({ of, filter }: { of: Schemas["AuditPage"]; filter: Filter }) {
  const all = of.records;
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No records">{nothing(of, filter)}</Calm>
      </div>
    );
  }
  return (
    <Table caption="Audit records, newest first" columns={["Time", "Operator", "Action", "Target", "Reason"]}>
      {all.map((r) => (
        <Row key={r.id} of={r} />
      ))}
    </Table>
  );
}

function nothing(of: Schemas["AuditPage"], filter: Filter): string {
  if (of.next_cursor) return "No record of this part matches the filters above. Earlier records may.";
  return Object.keys(filter).length > 0
    ? "No record matches the filters above."
    : "Changes by operators and changes of webhooks appear here.";
}

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
        <time dateTime={of.at}>{utc(of.at)}</time>
        <span class="under">
          <Since at={of.at} ago />
        </span>
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
