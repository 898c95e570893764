import { api, asked, type Schemas } from "../api/client";
import { Badge, Trouble } from "../parts/signs";
import { Since } from "../parts/time";
import { span } from "../parts/words";
import { useLive } from "../state/live";
import { signs } from "./events";

/** What happened to a lock of late, who held it last, and whether leases were too short. */
export function History({ tenant, name }: { tenant: string; name: string }) {
  const { data, failure } = useLive(`history ${tenant}/${name}`, 3000, (signal) =>
    asked(api.GET("/admin/locks/{tenant}/{name}/history", { signal, params: { path: { tenant, name } } })),
  );
  if (failure && !failure.passing) return <Trouble failure={failure} />;
  if (!data) return null;
  return (
    <>
      <Evidence of={data.evidence} />
      <div class="columns">
        <section class="stack" aria-labelledby="past-holders">
          <h2 id="past-holders">Last holders</h2>
          <Holders all={data.holders} />
        </section>
        <section class="stack" aria-labelledby="timeline">
          <h2 id="timeline">What happened</h2>
          <Timeline all={data.events} />
        </section>
      </div>
    </>
  );
}

const kinds: Record<Schemas["LeaseSign"]["kind"], string> = {
  renewed_after_expiry: "renewed after its lease had run out",
  released_after_expiry: "gave back after its lease had run out",
  renewed_late: "renewed late",
};

/** Signs that a lease was too short for who held it. Without any there is nothing to be said. */
export function Evidence({ of }: { of: Schemas["LeaseEvidence"] }) {
  if (of.worked_after_expiry + of.late_renewals + of.stale_writes === 0) return null;
  return (
    <section class="stack" aria-labelledby="evidence">
      <h2 id="evidence">Leases were too short</h2>
      <div class="sheet pad stack">
        {of.words.map((w) => (
          <p key={w} class="note wait">
            <span aria-hidden="true">⚠ </span>
            {w}
          </p>
        ))}
        <ul class="small">
          {of.signs.map((s) => (
            <li key={`${s.at} ${s.entry} ${s.kind}`}>
              <Since at={s.at} ago />: <b>{s.holder ?? "somebody"}</b> {kinds[s.kind]}
              {s.after_seconds !== undefined && `, ${span(s.after_seconds * 1000)} after`}, fence {s.fence}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

function Holders({ all }: { all: Schemas["PastHolder"][] }) {
  if (all.length === 0)
    return <div class="sheet pad soft">Nobody has held it and ended since this replica started.</div>;
  return (
    <div class="sheet scroll">
      <table>
        <caption class="unseen">Who held it last</caption>
        <thead>
          <tr>
            <th scope="col">Holder</th>
            <th scope="col">Held for</th>
            <th scope="col">Ended</th>
            <th scope="col" class="number">
              Fence
            </th>
          </tr>
        </thead>
        <tbody>
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
        </tbody>
      </table>
    </div>
  );
}

function Timeline({ all }: { all: Schemas["PastEvent"][] }) {
  if (all.length === 0) return <div class="sheet pad soft">Nothing since this replica started.</div>;
  return (
    <ol class="sheet past">
      {all.slice(0, 15).map((e) => {
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
  if (e.fence_presented !== undefined) parts.push(`fence ${e.fence_presented} after ${e.fence_known ?? "a newer one"}`);
  if (e.resource) parts.push(`at ${e.resource}`);
  if (e.revoked_by) parts.push(`by ${e.revoked_by}: ${e.reason ?? ""}`);
  return parts.join(", ");
}
