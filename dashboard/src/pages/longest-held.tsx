import { api, asked, type Schemas } from "../api/client";
import { acquire } from "../parts/curl";
import { Calm, Failed, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count, many, others, span } from "../parts/words";
import { useLive } from "../state/live";
import { href } from "../state/route";
import { holderPage, lockPage } from "./names";

/** How many locks are listed. */
const rows = 50;

/** The locks that are held, the longest first, until one holder is chosen. */
export function LongestHeld({ tenant }: { tenant: string }) {
  const query = { state: "held", sort: "-held_for", limit: rows, ...(tenant === "" ? {} : { tenant }) } as const;
  const { data, failure } = useLive(`held ${tenant}`, 3000, (ask) =>
    asked(api.GET("/admin/locks", { ...ask, params: { query } })),
  );
  return (
    <section class="stack" aria-labelledby="longest">
      <h2 id="longest">Longest holds</h2>
      <Failed failure={failure} />
      {data ? <Listed of={data} tenant={tenant} /> : <Loading failure={failure} />}
    </section>
  );
}

function Listed({ of, tenant }: { of: Schemas["AdminLockPage"]; tenant: string }) {
  if (of.locks.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No holders" line={tenant === "" ? acquire("orders:42") : undefined}>
          A holder appears here while it holds a lock.
        </Calm>
      </div>
    );
  }
  const more = of.matching - of.locks.length;
  return (
    <Table
      caption="Holders, the longest hold first"
      columns={["Holder", "Lock", "Held for", "Lease", { number: "Waiting" }]}
      more={more > 0 && <a href={allHeld(tenant)}>{`and ${many(more, "more held lock")}`}</a>}
    >
      {of.locks.flatMap((l) =>
        l.holders[0] ? [<Row key={`${l.tenant}/${l.name}`} lock={l} by={l.holders[0]} />] : [],
      )}
    </Table>
  );
}

/** The list of all held locks, which has pages. */
const allHeld = (tenant: string): string => href(["locks"], { state: "held", sort: "-held_for", tenant });

function Row({ lock, by }: { lock: Schemas["AdminLock"]; by: Schemas["AdminHolder"] }) {
  return (
    <tr>
      <td class="name">
        <a data-row href={holderPage(lock.tenant, by.holder)}>
          {by.holder}
        </a>
        {lock.holding > 1 && <span class="under">{others(lock.holding)}</span>}
        <span class="under">{lock.tenant}</span>
      </td>
      <td class="name">
        <a href={lockPage(lock)}>{lock.name}</a>
      </td>
      <td>
        <Since at={by.since} />
      </td>
      <td>{span(by.ttl_seconds * 1000)}</td>
      <td class="number">{count(lock.waiting)}</td>
    </tr>
  );
}
