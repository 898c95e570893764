import type { ComponentChildren } from "preact";
import { api, asked, type Schemas } from "../api/client";
import { acquire } from "../parts/curl";
import { Hint, type Term } from "../parts/hint";
import { PaceBadge, paceAt } from "../parts/pace";
import { Badge, Calm, Closed, Failed, Fence, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count, many, others, rate, span } from "../parts/words";
import { now } from "../state/clock";
import { connection, second, useLive } from "../state/live";
import { href } from "../state/route";
import { expiriesPage } from "./events";
import { Hours } from "./hours";
import { holderPage, lockPage } from "./names";

type View = Schemas["AdminOverview"];

/** What hurts, if anything does. */
export function Overview() {
  const { data, failure } = useLive("overview", second, (ask) => asked(api.GET("/admin/overview", ask)));
  return (
    <>
      <Head title="Overview">{data && <Health store={data.store} />}</Head>
      <Failed failure={failure} />
      {data ? <Seen view={data} /> : <Loading failure={failure} />}
    </>
  );
}

export function Health({ store }: { store: Schemas["AdminStore"] }) {
  if (connection.value === "lost") return <Badge sign="?">Store unknown</Badge>;
  if (store.refusal) {
    return (
      <Badge kind="harm" sign="✕">
        No grants: {store.refusal}
      </Badge>
    );
  }
  if (!store.current) {
    return (
      <Badge kind="harm" sign="⚠">
        Store unreachable{store.lost_seconds === undefined ? "" : ` for ${span(store.lost_seconds * 1000)}`}
      </Badge>
    );
  }
  return (
    <Badge kind="held" sign="✓">
      Store connected
    </Badge>
  );
}

function Seen({ view }: { view: View }) {
  return (
    <>
      <dl class="sheet figures">
        <Figure name="Held" value={count(view.held)} unit={view.held === 1 ? "lock" : "locks"} />
        <Figure name="Waiting" value={count(view.waiting)} unit={view.waiting === 1 ? "request" : "requests"}>
          {view.contended > 0 && (
            <a class="small" href={href(["locks"], { state: "contended" })}>
              at {many(view.contended, "lock")}
            </a>
          )}
        </Figure>
        <Figure name="Oldest wait" value={view.oldest ? <Since at={view.oldest.since} /> : "–"}>
          {view.oldest && (
            <span class="small">
              {view.oldest.holder} for <a href={lockPage(view.oldest)}>{view.oldest.name}</a>
            </span>
          )}
        </Figure>
        <Figure name="Replicas" value={view.replicas ? count(view.replicas.length) : "–"}>
          {view.replicas && (
            <span class="small soft">{[...new Set(view.replicas.map((r) => r.version))].join(", ")}</span>
          )}
        </Figure>
      </dl>
      {view.recent && <Recent of={view.recent} />}
      <section class="stack" aria-labelledby="blockers">
        <div class="head">
          <h2 id="blockers">Most contended</h2>
          {view.blockers.length > 0 && <a href={href(["blocking"])}>All blocking holders</a>}
        </div>
        {view.blockers.length === 0 ? (
          <div class="sheet">
            <Calm title="No contention" line={view.held === 0 ? acquire("orders:42") : undefined}>
              {view.held === 0
                ? "No locks in use. Acquire one:"
                : `${many(view.held, "lock")} held, and no request waits. A lock appears here when a request has to wait for it.`}
            </Calm>
          </div>
        ) : (
          <Blockers all={view.blockers} />
        )}
      </section>
      {view.recent && <Hours />}
      {view.replicas && <Replicas all={view.replicas} self={view.replica} store={view.store} />}
    </>
  );
}

/** Whether what happened since an instant is that of a quarter of an hour, or of the shorter time since the replica started. */
function isWhole(since: string): boolean {
  return now.value - Date.parse(since) >= 14 * 60_000;
}

/** What happened in the last quarter of an hour. Without the right or without data there is no row. */
export function Recent({ of }: { of: Schemas["SeriesPoint"] }) {
  const [grants, expiries] = [rate(of.grants_per_second), rate(of.expiries_per_second)];
  return (
    <section class="stack" aria-labelledby="recent">
      <h2 id="recent">
        Recent{" "}
        <span class="soft small">
          last {isWhole(of.at) ? "15 minutes" : <Since at={of.at} />}, seen by this replica
        </span>
      </h2>
      <dl class="sheet figures">
        <Figure name="Acquired" value={grants.value} unit={grants.unit} />
        <Figure name="Expired leases" hint="expired" value={expiries.value} unit={expiries.unit}>
          {of.expiries > 0 ? (
            <a class="small" href={expiriesPage()}>
              {count(of.expiries)} in total
            </a>
          ) : (
            <span class="small soft">0 in total</span>
          )}
        </Figure>
        <Spans name="Wait time" hint="wait" of={of.wait_seconds} />
        <Spans name="Hold time" hint="hold" of={of.hold_seconds} />
      </dl>
    </section>
  );
}

interface ReplicasOf {
  all: readonly Schemas["AdminReplica"][];
  /** Which one answers. */
  self: string;
  store: Schemas["AdminStore"];
}

/** The processes that serve the store, and whether this one sees it. */
export function Replicas({ all, self, store }: ReplicasOf) {
  return (
    <section class="stack" aria-labelledby="replicas">
      <div class="head">
        <h2 id="replicas">Store and replicas</h2>
        <Health store={store} />
      </div>
      <Table caption="Replicas that serve the store" columns={["Replica", "Version", "Uptime"]}>
        {all.map((r) => (
          <tr key={r.replica}>
            <td class="name">
              {r.host || r.replica} {r.replica === self && <Badge>serves this page</Badge>}
              {r.host && <span class="under">{r.replica}</span>}
            </td>
            <td>{r.version || "unknown"}</td>
            <td>
              <Since at={r.started} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Spans({ name, hint, of }: { name: string; hint: Term; of?: Schemas["Percentiles"] | undefined }) {
  return (
    <Figure name={name} hint={hint} value={of ? span(of.p50 * 1000) : "–"} unit={of ? "p50" : ""}>
      {of && <span class="small soft">p99 {span(of.p99 * 1000)}</span>}
    </Figure>
  );
}

interface FigureOf {
  name: string;
  hint?: Term;
  value: ComponentChildren;
  unit?: string;
  children?: ComponentChildren;
}

function Figure({ name, hint, value, unit, children }: FigureOf) {
  return (
    <div>
      <dt>
        {name}
        {hint && <Hint term={hint} />}
      </dt>
      <dd class="big">
        {value} {unit && <span class="unit">{unit}</span>}
      </dd>
      {children && <dd>{children}</dd>}
    </div>
  );
}

function Blockers({ all }: { all: Schemas["AdminBlocker"][] }) {
  return (
    <Table
      caption="Most contended locks"
      columns={["Lock", "Held by", "Queue", { number: "Waiting" }, "Oldest wait", "Held for"]}
    >
      {all.map((b) => (
        <tr key={`${b.tenant}/${b.name}`}>
          <td class="name">
            <a data-row href={lockPage(b)}>
              {b.name}
            </a>
            <span class="under">
              {b.tenant} <Closed of={b.closed} />
            </span>
          </td>
          <td>
            {b.holder ? (
              <a href={holderPage(b.tenant, b.holder.holder)}>{b.holder.holder}</a>
            ) : (
              <span class="soft">no holder</span>
            )}
            {b.holder && (
              <span class="under">
                fence {b.holder.fence}
                {b.holding > 1 && `, ${others(b.holding)}`}
              </span>
            )}
            {b.holder && <PaceBadge {...paceAt(b, b.holder)} />}
          </td>
          <td>
            <Fence holding={b.holding} waiting={b.waiting} />
          </td>
          <td class="number">{count(b.waiting)}</td>
          <td>
            <Since at={b.oldest_since} />
          </td>
          <td>
            {b.holder && <Since at={b.holder.since} />}
            {b.usual_hold_seconds !== undefined && (
              <span class="under">usually up to {span(b.usual_hold_seconds * 1000)}</span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
