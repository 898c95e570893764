import { api, asked, type Schemas } from "../api/client";
import { Chart } from "../parts/chart";
import { curl, Shell } from "../parts/curl";
import { TenantField } from "../parts/filter";
import { Replica } from "../parts/replica";
import { Failed, Head, Loading } from "../parts/signs";
import { Since } from "../parts/time";
import { count, rate, span } from "../parts/words";
import { second, useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { HeatMap } from "./heatmap";

/** How many locks the heat map shows. */
const rows = 20;

/** Where and when others waited, over the last quarter of an hour. */
export function Contention() {
  const tenant = route.value.query.get("tenant") ?? "";
  const query = tenant === "" ? {} : { tenant };
  const heat = useLive(`heatmap ${tenant}`, second, (ask) =>
    asked(api.GET("/admin/heatmap", { ...ask, params: { query: { ...query, limit: rows } } })),
  );
  const failed = heat.failure && !heat.failure.passing;
  return (
    <>
      <Head title="Contention">
        {heat.data && (
          <span class="soft small">
            seen by <Replica id={heat.data.replica} />
          </span>
        )}
      </Head>
      {seesAll() && (
        <search class="filters">
          <TenantField first value={tenant} set={(v) => setQuery({ tenant: v })} />
        </search>
      )}
      <Failed failure={heat.failure} />
      {heat.data ? <HeatMap of={heat.data} /> : <Loading failure={heat.failure} />}
      {!failed && <Series query={query} />}
      <Shell
        id="curl"
        line={`${curl("GET", `/admin/heatmap?${new URLSearchParams({ ...query, limit: String(rows) })}`)}`}
      />
    </>
  );
}

function Series({ query }: { query: { tenant?: string } }) {
  const { data, failure } = useLive(`series ${query.tenant ?? ""}`, 5000, (ask) =>
    asked(api.GET("/admin/series", { ...ask, params: { query } })),
  );
  if (failure?.status === 403) return <p class="soft">Charts need a token that sees all locks of the tenant.</p>;
  if (!data || (failure && !failure.passing)) return <Failed failure={failure} />;
  return (
    <section class="stack" aria-labelledby="series">
      <Failed failure={failure} />
      <h2 id="series">
        Activity{" "}
        <span class="soft small">
          in steps of {data.step_seconds} s,{" "}
          {data.since ? (
            <>
              last <Since at={data.since} />
            </>
          ) : (
            "last 15 minutes"
          )}
        </span>
      </h2>
      {data.points.length === 0 ? <p class="sheet pad soft">No activity yet.</p> : <Charts points={data.points} />}
    </section>
  );
}

type Point = Schemas["SeriesPoint"];

/** A count with what is counted. */
const of = (unit: string) => (n: number) => `${count(n)} ${unit}`;
const seconds = (n: number) => span(n * 1000);
const often = (n: number): string => {
  const { value, unit } = rate(n);
  return `${value} ${unit}`;
};

/** All of the charts, or the few that show whether anything hurts. */
export function Charts({ points, few = false }: { points: readonly Point[]; few?: boolean }) {
  const at = points.map((p) => p.at);
  const one = (name: string, value: (p: Point) => number | undefined) => ({ name, values: points.map(value) });
  return (
    <div class="charts">
      <Chart
        title="Waiting"
        unit="requests"
        say={of("waiting")}
        at={at}
        lines={[one("on average", (p) => p.waiting)]}
      />
      {!few && (
        <Chart title="Held" unit="holders" say={of("held")} at={at} lines={[one("on average", (p) => p.holding)]} />
      )}
      <Chart title="Acquired" unit="grants" say={often} at={at} lines={[one("acquired", (p) => p.grants_per_second)]} />
      <Chart
        title="Expired leases"
        unit="ended without a release"
        say={often}
        at={at}
        lines={[one("expired", (p) => p.expiries_per_second)]}
      />
      {!few && (
        <>
          <Chart
            title="Wait time"
            unit="request to grant"
            say={seconds}
            at={at}
            lines={[one("p99", (p) => p.wait_seconds?.p99), one("p50", (p) => p.wait_seconds?.p50)]}
          />
          <Chart
            title="Hold time"
            unit="grant to release"
            say={seconds}
            at={at}
            lines={[one("p99", (p) => p.hold_seconds?.p99), one("p50", (p) => p.hold_seconds?.p50)]}
          />
        </>
      )}
    </div>
  );
}
