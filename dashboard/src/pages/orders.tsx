import { api, asked, type Schemas } from "../api/client";
import { Graph } from "../parts/graph";
import { Hint } from "../parts/hint";
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
      <Head title="Deadlocks" />
      <Failed failure={refused.failure} />
      <section class="stack" aria-labelledby="contradictions">
        <h2>
          <span id="contradictions">Contradicting lock orders</span>
          <Hint term="contradiction" />
        </h2>
        <div class="sheet">
          {orders.data ? <Contradictions report={orders.data} /> : <Loading failure={orders.failure} />}
        </div>
      </section>
      <section class="stack" aria-labelledby="refused">
        <h2 id="refused">Rejected deadlocks</h2>
        <div class="sheet">
          {refused.data ? <Refused all={refused.data.deadlocks} /> : <Loading failure={refused.failure} />}
        </div>
      </section>
      {orders.data && orders.data.orders.length > 0 && (
        <section class="stack" aria-labelledby="seen">
          <h2 id="seen">Observed lock orders</h2>
          <Orders report={orders.data} />
        </section>
      )}
    </>
  );
}

function Refused({ all }: { all: Schemas["RefusedDeadlock"][] }) {
  if (all.length === 0) return <Calm title="No deadlocks">This replica has rejected none since it started.</Calm>;
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
              <b>{d.refused}</b> requested {d.locks.join(", ")}. The server rejected it: {many(d.waits, "wait")} would
              have formed a cycle.
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
            label={`Contradicting lock orders of ${locksOf(c).join(" and ")}`}
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
                  <a href={holderPage(c.tenant, s.example.holder)}>{s.example.holder}</a> held {s.example.held} and
                  acquired {s.example.taken} <Since at={s.example.at} ago />
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
      <Calm title="No lock orders observed">
        Since this replica started, no holder has acquired a lock while it held another.
      </Calm>
    );
  }
  return (
    <Calm title="No contradictions">
      All lock orders that this replica has observed since it started agree
      {forgotten > 0 ? ". It evicted some of them." : "."}
    </Calm>
  );
}

function Orders({ report }: { report: Schemas["LockOrderReport"] }) {
  return (
    <Table
      caption="Orders in which holders acquired locks"
      columns={["Tenant", "First", "Then", { number: "Times" }, "Example"]}
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
