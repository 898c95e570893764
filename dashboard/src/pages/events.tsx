import { Fragment } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Schemas } from "../api/client";
import { acquire } from "../parts/curl";
import { FilterField, TenantField } from "../parts/filter";
import { Badge, Calm, Failed, Head } from "../parts/signs";
import { many, span, utc } from "../parts/words";
import { hidden, paused } from "../state/live";
import { href, route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { type Event, most, Tail } from "../state/tail";
import { holderPage, lockPage } from "./names";

type Kind = Schemas["Event"]["type"];

/** A type that is not here yet is shown by its name. */
export const signs: Partial<Record<Kind, { name: string; sign: string; kind: string }>> = {
  "lock.enqueued": { name: "enqueued", sign: "○", kind: "wait" },
  "lock.acquired": { name: "acquired", sign: "●", kind: "held" },
  "lock.released": { name: "released", sign: "✓", kind: "" },
  "lock.expired": { name: "expired", sign: "⚠", kind: "harm" },
  "lock.revoked": { name: "revoked", sign: "✕", kind: "harm" },
  "lock.wait_timeout": { name: "timed out", sign: "◔", kind: "wait" },
  "lock.deadlock_refused": { name: "deadlock rejected", sign: "↻", kind: "harm" },
  "lock.superseded": { name: "superseded", sign: "↷", kind: "wait" },
  "lock.release_requested": { name: "release requested", sign: "?", kind: "wait" },
  "events.missed": { name: "events missed", sign: "…", kind: "harm" },
};

/** What the address has for events that happened before the page was opened, too. */
const keptToo = "kept";

/** The id before that of any event. */
const beforeAll = "0-0";

/** The address of the kept expiries, of all tenants or of one. */
export function expiriesPage(of: { tenant?: string } = {}): string {
  return href(["events"], { types: "lock.expired", from: keptToo, ...of });
}

/** What happens, as it happens. */
export function Events() {
  const { query } = route.value;
  const filter = {
    types: query.get("types") ?? "",
    locks: query.get("locks") ?? "",
    tenant: query.get("tenant") ?? "",
  };
  const search = new URLSearchParams(Object.entries(filter).filter(([, v]) => v !== "")).toString();
  const kept = query.get("from") === keptToo;
  const tail = useMemo(() => new Tail(kept ? beforeAll : ""), [search, kept]);
  const unseen = hidden.value;
  useEffect(() => {
    if (unseen) return; // a browser has few connections to a server, for all of its tabs together
    const stop = new AbortController();
    void tail.run(`/admin/events${search === "" ? "" : `?${search}`}`, stop.signal);
    return () => stop.abort();
  }, [tail, search, unseen]);
  useEffect(() => paused.subscribe((still) => tail.hold(still)), [tail]);
  const shown = tail.shown.value.filter((e) => e.data.after !== beforeAll);
  return (
    <>
      <Head title="Events">
        {paused.value && (
          <Badge kind="wait">
            {tail.behind.value >= most ? `${most} or more` : tail.behind.value} new while paused
          </Badge>
        )}
      </Head>
      <Filters filter={filter} kept={kept} />
      <Failed failure={tail.failure.value} />
      <div class="sheet">
        {shown.length === 0 ? (
          <Calm
            title={kept ? "No such event is kept" : "No events yet"}
            line={tail.open.value && !kept ? acquire("orders:42") : undefined}
          >
            {tail.open.value ? empty(kept) : "Connecting…"}
          </Calm>
        ) : (
          <ol class="tail" aria-label="Events, newest first">
            {shown.map((e) => (
              <Line key={e.id} event={e} />
            ))}
          </ol>
        )}
      </div>
      {kept && <p class="soft small">The server keeps the newest events only.</p>}
    </>
  );
}

const empty = (kept: boolean): string =>
  kept ? "New ones appear here." : "Events from now on appear here. To see one, acquire a lock:";

interface FiltersOf {
  filter: { types: string; locks: string; tenant: string };
  kept: boolean;
}

function Filters({ filter, kept }: FiltersOf) {
  return (
    <search class="filters">
      <FilterField
        label="Locks"
        first
        placeholder="Exact match, or orders:*"
        value={filter.locks}
        set={(v) => setQuery({ locks: v })}
      />
      <label>
        Type
        <select value={filter.types} onChange={(e) => setQuery({ types: e.currentTarget.value })}>
          <option value="">All</option>
          {Object.entries(signs).map(
            ([type, s]) =>
              type !== "events.missed" && (
                <option key={type} value={type}>
                  {s.name}
                </option>
              ),
          )}
        </select>
      </label>
      <label>
        From
        <select value={kept ? keptToo : ""} onChange={(e) => setQuery({ from: e.currentTarget.value })}>
          <option value="">Now on</option>
          <option value={keptToo}>The oldest kept</option>
        </select>
      </label>
      {seesAll() && <TenantField value={filter.tenant} set={(v) => setQuery({ tenant: v })} />}
    </search>
  );
}

function Line({ event }: { event: Event }) {
  const sign = signs[event.type];
  const { data } = event;
  const { tenant = "" } = data;
  const locks = data.lock !== undefined ? [data.lock] : (data.locks ?? []);
  return (
    <li data-row tabIndex={-1}>
      <time class="soft" dateTime={event.timestamp} title={utc(event.timestamp)}>
        {event.timestamp.slice(11, 23)} UTC
      </time>
      <span>
        <Badge kind={sign?.kind ?? ""} sign={sign?.sign ?? "?"}>
          {sign?.name ?? event.type}
        </Badge>
      </span>
      <span>
        {locks.map((name, i) => (
          <Fragment key={name}>
            {i > 0 && ", "}
            <a href={lockPage({ tenant, name })}>{name}</a>
          </Fragment>
        ))}
        <span class="soft">
          {" "}
          {data.entry?.holder && <a href={holderPage(tenant, data.entry.holder)}>{data.entry.holder}</a>}
          {details(data)}
        </span>
      </span>
      <span class="soft">{data.tenant}</span>
    </li>
  );
}

function details(data: Schemas["EventData"]): string {
  const parts = [];
  if (data.entry?.fence !== undefined) parts.push(`fence ${data.entry.fence}`);
  if (data.waited_seconds !== undefined) parts.push(`waited ${span(data.waited_seconds * 1000)}`);
  if (data.held_seconds !== undefined && data.held) parts.push(`held ${span(data.held_seconds * 1000)}`);
  if (data.locks !== undefined) parts.push(`a set of ${many(data.locks.length, "lock")}`);
  if (data.after !== undefined) parts.push(`from ${data.after} to ${data.before ?? ""}`);
  return parts.length === 0 ? "" : ` · ${parts.join(" · ")}`;
}
