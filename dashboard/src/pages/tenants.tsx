import { api, asked, type Schemas } from "../api/client";
import { acquire, curl, Shell } from "../parts/curl";
import { Replica } from "../parts/replica";
import { Calm, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { Turn } from "../parts/turn";
import { count, many } from "../parts/words";
import { second, useLive } from "../state/live";
import { href, route } from "../state/route";
import { expiriesPage } from "./events";

/** What each tenant uses of what it may use. */
export function Tenants() {
  const cursor = route.value.query.get("cursor") ?? "";
  const query = cursor === "" ? {} : { cursor };
  const { data, failure } = useLive(`tenants ${cursor}`, second, (ask) =>
    asked(api.GET("/admin/tenants", { ...ask, params: { query } })),
  );
  return (
    <>
      <Head title="Tenants">{data && <span class="soft">{many(data.total, "tenant")} with locks in use</span>}</Head>
      <Failed failure={failure} />
      {data ? <Listed all={data.tenants} /> : <Loading failure={failure} />}
      <Turn first="First page" at={cursor} next={data?.next_cursor} more="Next page" />
      {data && (
        <p class="soft small">
          Acquired and expired count the last 15 minutes, seen by <Replica id={data.replica} />.
        </p>
      )}
      <Shell id="curl" line={curl("GET", "/admin/tenants")} />
    </>
  );
}

const columns = [
  "Tenant",
  { number: "Held" },
  { number: "Waiting" },
  "Oldest wait",
  { number: "Acquired" },
  { number: "Expired leases" },
  "Queue positions",
  "Async renewals",
];

function Listed({ all }: { all: Schemas["AdminTenant"][] }) {
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No tenants with locks in use" line={acquire("orders:42")}>
          A tenant appears here while one of its locks is held or waited for.
        </Calm>
      </div>
    );
  }
  return (
    <Table caption="Tenants, by name" columns={columns}>
      {all.map((t) => (
        <Row key={t.tenant} of={t} />
      ))}
    </Table>
  );
}

function Row({ of }: { of: Schemas["AdminTenant"] }) {
  const { tenant, bounds, recent } = of;
  return (
    <tr>
      <td class="name">
        <a data-row href={href(["tenants", tenant])}>
          {tenant}
        </a>
      </td>
      <td class="number">{count(of.held)}</td>
      <td class="number">{of.waiting > 0 ? count(of.waiting) : "–"}</td>
      <td>{of.oldest_since ? <Since at={of.oldest_since} /> : "–"}</td>
      <td class="number">{recent ? `${count(recent.grants_per_second)} /s` : "–"}</td>
      <td class="number">
        {recent?.expiries ? <a href={expiriesPage({ tenant })}>{count(recent.expiries)}</a> : recent ? "0" : "–"}
      </td>
      <td>{bounds ? <Use name="positions" is={bounds.places} most={bounds.max_places} /> : "–"}</td>
      <td>
        {bounds ? <Use name="per second" is={bounds.renewals_per_second} most={bounds.max_renewals_per_second} /> : "–"}
      </td>
    </tr>
  );
}

/** How much of a bound is used: a bar for the eye, and both numbers. */
export function Use({ name, is, most }: { name: string; is: number; most: number }) {
  const part = most > 0 ? Math.min(1, is / most) : 1;
  return (
    <span class="stack use">
      <span class="small">
        {count(is)} of {count(most)} {name}
      </span>
      <span class={`bar ${part >= 1 ? "over" : part > 0.8 ? "short" : ""}`} aria-hidden="true">
        <i style={{ transform: `scaleX(${part})` }} />
      </span>
    </span>
  );
}
