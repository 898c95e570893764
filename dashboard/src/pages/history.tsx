import { useEffect, useRef } from "preact/hooks";
import { api, asked, type Schemas } from "../api/client";
import { Chart } from "../parts/chart";
import { Badge, Failed } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count, many, span, utc } from "../parts/words";
import { useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { signs } from "./events";

/** What happened to a lock of late, who held it last, and whether leases were too short. */
export function History({ tenant, name }: { tenant: string; name: string }) {
  const { data, failure } = useLive(`history ${tenant}/${name}`, 3000, (ask) =>
    asked(api.GET("/admin/locks/{tenant}/{name}/history", { ...ask, params: { path: { tenant, name } } })),
  );
  if (!data || (failure && !failure.passing)) return <Failed failure={failure} />;
  return (
    <>
      <Failed failure={failure} />
      <Evidence of={data.evidence} />
      <div class="columns">
        <section class="stack" aria-labelledby="past-holders">
          <h2 id="past-holders">Previous holders</h2>
          <Holders all={data.holders} />
        </section>
        <Timeline of={data} />
      </div>
    </>
  );
}

type PastEvent = Schemas["PastEvent"];

const kinds: Record<Schemas["LeaseSign"]["kind"], string> = {
  renewed_after_expiry: "tried to renew after its lease had expired",
  released_after_expiry: "tried to release after its lease had expired",
  renewed_late: "renewed late",
};

/** Signs that a lease was too short for who held it. Without any there is nothing to be said. */
export function Evidence({ of }: { of: Schemas["LeaseEvidence"] }) {
  if (of.worked_after_expiry + of.late_renewals + of.stale_writes === 0) return null;
  return (
    <section class="stack" aria-labelledby="evidence">
      <h2 id="evidence">Leases too short</h2>
      <div class="sheet pad stack">
        {of.words.map((w) => (
          <p key={w} class="note wait">
            <span aria-hidden="true">⚠ </span>
            {w.charAt(0).toUpperCase() + w.slice(1)}.
          </p>
        ))}
        {of.signs.length > 0 && (
          <ul class="small">
            {of.signs.map((s) => (
              <li key={`${s.at} ${s.entry} ${s.kind}`}>
                <Since at={s.at} ago />: <b>{s.holder ?? "a holder"}</b> {kinds[s.kind]}
                {s.after_seconds !== undefined && `, ${span(s.after_seconds * 1000)} after`}, fence {s.fence}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

function Holders({ all }: { all: Schemas["PastHolder"][] }) {
  if (all.length === 0) return <div class="sheet pad soft">No previous holder recorded on this replica.</div>;
  return (
    <Table caption="Previous holders" columns={["Holder", "Held for", "Ended", { number: "Fence" }]}>
      {all.slice(0, 10).map((h) => (
        <tr key={h.id}>
          <td class="name">{h.holder}</td>
          <td class="whole">{span(h.held_seconds * 1000)}</td>
          <td class="whole">
            {h.ended}
            <span class="under">
              <Since at={h.until} ago />
            </span>
          </td>
          <td class="number">{h.fence}</td>
        </tr>
      ))}
    </Table>
  );
}

/** How long a step of the heat map is, from which one comes to what happened in it. */
const step = 30_000;

/** Those of the events that were in the step that begins at an instant; without one, the last ones. */
export function during(all: readonly PastEvent[], at: string | null): readonly PastEvent[] {
  const begins = Date.parse(at ?? "");
  if (Number.isNaN(begins)) return all.slice(0, 15);
  return all.filter((e) => Date.parse(e.at) >= begins && Date.parse(e.at) < begins + step);
}

function Timeline({ of }: { of: Schemas["AdminHistory"] }) {
  const all = of.events;
  const element = useRef<HTMLElement>(null);
  const at = route.value.query.get("at");
  const begins = Number.isNaN(Date.parse(at ?? "")) ? null : at;
  useEffect(() => {
    if (begins) element.current?.scrollIntoView({ block: "center" });
  }, [begins]);
  const shown = during(all, begins);
  return (
    <section class="stack" aria-labelledby="timeline" ref={element}>
      <div class="head">
        <h2 id="timeline">History {begins && <span class="soft small">from {utc(begins)}, for 30 s</span>}</h2>
        {begins && (
          <button type="button" onClick={() => setQuery({ at: "" })}>
            Show latest
          </button>
        )}
      </div>
      {begins && <Waited of={of.waiting} begins={begins} />}
      {shown.length > 0 ? <Past all={shown} /> : <None all={all} then={begins !== null} />}
      {begins && shown.length > 0 && <Kept all={all} begins={begins} />}
    </section>
  );
}

type Heat = Schemas["LockHeat"];

/** How many waited on average in the step that begins at an instant; undefined if that is not known. */
export function averageAt(of: Heat | undefined, begins: string): number | undefined {
  if (!of) return undefined;
  return of.average[Math.round((Date.parse(begins) - Date.parse(of.from)) / (of.step_seconds * 1000))];
}

/** The number of waiters at a time whose events may be gone, and before and after. */
function Waited({ of, begins }: { of?: Heat | undefined; begins: string }) {
  const then = averageAt(of, begins);
  if (!of || then === undefined) return null;
  const from = Date.parse(of.from);
  const at = of.average.map((_, i) => new Date(from + i * of.step_seconds * 1000).toISOString());
  return (
    <>
      <p>
        <b>{many(then, "waiter")}</b> on average then; maximum of the last 15 minutes: {count(Math.max(...of.average))}.
      </p>
      <Chart
        title="Waiting"
        unit={`average in each ${of.step_seconds} s`}
        say={(n) => `${count(n)} waiting`}
        at={at}
        mark={at.indexOf(new Date(Date.parse(begins)).toISOString())}
        lines={[{ name: "on average", values: of.average }]}
      />
    </>
  );
}

/** From when on events are kept, if that is within the time shown. */
function Kept({ all, begins }: { all: readonly PastEvent[]; begins: string }) {
  const oldest = all.at(-1);
  if (!oldest || Date.parse(oldest.at) < Date.parse(begins)) return null;
  return <p class="soft small">The server keeps only the latest events of each lock: here from {utc(oldest.at)}.</p>;
}

function None({ all, then }: { all: readonly PastEvent[]; then: boolean }) {
  const oldest = all.at(-1);
  return (
    <div class="sheet pad soft">
      {then && oldest ? (
        <>
          No events kept from that time. The server keeps only the latest events of each lock: here from{" "}
          {utc(oldest.at)}, <Since at={oldest.at} ago />.
        </>
      ) : (
        "No events recorded on this replica."
      )}
    </div>
  );
}

function Past({ all }: { all: readonly PastEvent[] }) {
  return (
    <ol class="sheet past">
      {all.map((e) => {
        const sign = signs[e.type as keyof typeof signs];
        return (
          <li key={e.event}>
            <Badge kind={sign?.kind ?? ""} sign={sign?.sign ?? "·"}>
              {sign?.name ?? e.type}
            </Badge>
            <span>
              <b>{e.holder}</b> <span class="soft small">{told(e)}</span>
            </span>
            <span class="soft small">
              <Since at={e.at} ago />
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** What an event says besides who and when. */
export function told(e: Schemas["PastEvent"]): string {
  const parts: string[] = [];
  if (e.number !== undefined) parts.push(`fence ${e.number}`);
  if (e.lasted_seconds !== undefined) {
    parts.push(`${e.type === "lock.acquired" ? "waited" : "held"} ${span(e.lasted_seconds * 1000)}`);
  }
  if (e.revoked_by) parts.push(`by ${e.revoked_by}: ${e.reason ?? ""}`);
  return parts.join(", ");
}
