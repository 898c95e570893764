import { api, asked, type Schemas } from "../api/client";
import { Graph } from "../parts/graph";
import { Badge, Calm, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count, many } from "../parts/words";
import { useLive } from "../state/live";
import { holderPage } from "./names";

const every = 5000;

/** How many deadlocks are on the screen: the newest. */
const shown = 20;

/** Deadlocks that were refused, and orders of locks that could become one. */
export function Deadlocks() {
  const refused = useLive("deadlocks", every, (ask) =>
    asked(api.GET("/admin/deadlocks", { ...ask, params: { query: { limit: shown } } })),
  );
  const orders = useLive("orders", every, (ask) => asked(api.GET("/admin/lock-order", ask)));
  return (
    <>
      <Head title="Deadlocks and orders" />
      <Failed failure={refused.failure} />
      <section class="stack" aria-labelledby="contradictions">
        <h2 id="contradictions">Contradicting orders</h2>
        <div class="sheet">
          {orders.data ? <Contradictions report={orders.data} /> : <Loading failure={orders.failure} />}
        </div>
      </section>
      <section class="stack" aria-labelledby="refused">
        <h2 id="refused">Refused deadlocks</h2>
        <div class="sheet">
          {refused.data ? <Refused all={refused.data.deadlocks} /> : <Loading failure={refused.failure} />}
        </div>
      </section>
      {orders.data && orders.data.orders.length > 0 && (
        <section class="stack" aria-labelledby="seen">
          <h2 id="seen">Orders that were seen</h2>
          <Orders report={orders.data} />
        </section>
      )}
    </>
  );
}

function Refused({ all }: { all: Schemas["RefusedDeadlock"][] }) {
  if (all.length === 0) return <Calm title="No deadlocks">None was refused since this replica started.</Calm>;
  return (
    <ol class="tail">
      {all.map((d) => (
        <li key={`${d.tenant} ${d.at} ${d.refused}`} data-row tabIndex={-1}>
          <span class="soft">
            <Since at={d.at} ago />
          </span>
          <span>{d.tenant}</span>
          <div class="stack">
            <p>
              <b>{d.refused}</b> was refused {d.locks.join(", ")}: {many(d.waits, "wait")} would have gone in a circle.
            </p>
            <Cycle steps={d.cycle} />
          </div>
        </li>
      ))}
    </ol>
  );
}

function Cycle({ steps }: { steps: Schemas["CycleStep"][] }) {
  return (
    <p class="cycle small">
      {steps.map((s) => (
        <span key={`${s.holder} ${s.waits_for ?? ""}`} class="cycle">
          <Badge>{s.holder}</Badge>
          <span class="soft">
            waits for {s.waits_for ?? "a lock"}
            {s.holds ? ", held by" : ", behind"}
          </span>
        </span>
      ))}
      <Badge>{steps[0]?.holder}</Badge>
    </p>
  );
}

type Contradiction = Schemas["OrderContradiction"];

export function Contradictions({ report }: { report: Schemas["LockOrderReport"] }) {
  const all = report.contradictions;
  if (all.length === 0) return <Agreed report={report} />;
  return (
    <ul class="contradictions">
      {all.map((c, i) => (
        <li key={`${c.tenant} ${c.found_at} ${c.sides[0]?.from}`} class="pad stack" data-row tabIndex={-1}>
          <p class="soft">
            {c.tenant}, found <Since at={c.found_at} ago />
          </p>
          <Graph
            label={`Contradicting orders of ${locksOf(c).join(" and ")}`}
            describedBy={`contradiction-${i}`}
            edges={c.sides.map((s) => ({ from: s.from, to: s.to, label: s.example.holder }))}
          />
          <ul class="stack" id={`contradiction-${i}`}>
            {c.sides.map((s) => (
              <li key={`${s.from} ${s.to}`}>
                <b>
                  {s.from} <span aria-hidden="true">→</span>
                  <span class="unseen">then</span> {s.to}
                </b>
                <span class="soft">
                  {" "}
                  <a href={holderPage(c.tenant, s.example.holder)}>{s.example.holder}</a> held {s.example.held} and took{" "}
                  {s.example.taken} <Since at={s.example.at} ago />
                </span>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function locksOf(c: Contradiction): string[] {
  return [...new Set(c.sides.flatMap((s) => [s.from, s.to]))];
}

/** Orders can agree only where some were seen. */
function Agreed({ report: { orders, forgotten } }: { report: Schemas["LockOrderReport"] }) {
  if (orders.length === 0 && forgotten === 0) {
    return (
      <Calm title="No orders were seen yet">
        Since this replica started, no named worker has taken a lock while it held another.
      </Calm>
    );
  }
  return (
    <Calm title="No contradictions">
      The orders that this replica has seen since it started agree
      {forgotten > 0 ? ", as far as it remembers them." : "."}
    </Calm>
  );
}

function Orders({ report }: { report: Schemas["LockOrderReport"] }) {
  return (
    <Table
      caption="Orders in which workers took locks"
      columns={["Tenant", "First", "Then", { number: "Seen" }, "Example"]}
    >
      {report.orders.map((o) => (
        <tr key={`${o.tenant} ${o.from} ${o.to}`}>
          <td>{o.tenant}</td>
          <td>{o.from}</td>
          <td>{o.to}</td>
          <td class="number">{count(o.seen)}</td>
          <td class="soft">
            {o.examples[0] && (
              <>
                {o.examples[0].holder}: {o.examples[0].held}, {o.examples[0].taken}
              </>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
