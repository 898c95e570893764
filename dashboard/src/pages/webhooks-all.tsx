import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { TenantField } from "../parts/filter";
import { Calm, Failed, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { Turn } from "../parts/turn";
import { count } from "../parts/words";
import { useLive } from "../state/live";
import { href, route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { Sending, told } from "./sending";

interface Filter {
  tenant?: string;
  cursor?: string;
}

/** Reads the address. */
function filterOf(query: URLSearchParams): Filter {
  const f: Filter = {};
  for (const name of ["tenant", "cursor"] as const) {
    const value = query.get(name);
    if (value) f[name] = value;
  }
  return f;
}

/** The webhooks of all tenants that the session may see, as operators see them. */
export function AllWebhooks() {
  const filter = filterOf(route.value.query);
  const { data, failure } = useLive(`all webhooks ${JSON.stringify(filter)}`, 5000, (ask) =>
    asked(api.GET("/admin/webhooks", { ...ask, params: { query: filter } })),
  );
  return (
    <>
      {seesAll() && (
        <search class="filters">
          <TenantField first value={filter.tenant ?? ""} set={(v) => setQuery({ tenant: v, cursor: "" })} />
        </search>
      )}
      <Failed failure={failure} />
      {data ? <Rows all={data.webhooks} filtered={filter.tenant} /> : <Loading failure={failure} />}
      <Turn first="First page" at={filter.cursor} next={data?.next_cursor} more="Next page" />
      <Shell
        id="curl"
        line={curl("GET", `/admin/webhooks${filter.tenant ? `?tenant=${encodeURIComponent(filter.tenant)}` : ""}`)}
      />
    </>
  );
}

function Rows({ all, filtered }: { all: Schemas["AdminWebhook"][]; filtered: string | undefined }) {
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No webhooks">
          {filtered ? `The tenant ${filtered} has none.` : "No tenant that you can see has one."}
        </Calm>
      </div>
    );
  }
  return (
    <Table
      caption="Webhooks, by tenant"
      columns={["Receiver", "State", { number: "Pending" }, "Locks", "Events", "Created"]}
    >
      {all.map((w) => (
        <tr key={w.id}>
          <td class="name">
            <a data-row href={href(["webhooks", w.tenant, w.id])}>
              {w.receiver}
            </a>
            <span class="under">
              {w.tenant} · {w.id}
            </span>
          </td>
          <td>
            <Sending of={w} />
          </td>
          <td class="number">{pending(w)}</td>
          <td>{w.locks}</td>
          <td class="text">{told(w.events)}</td>
          <td class="whole">
            <Since at={w.created_at} ago />
            <span class="under">by {w.created_by}</span>
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** How many deliveries are kept to be tried again. */
export function pending(of: Pick<Schemas["AdminWebhook"], "pending" | "pending_more">): string {
  if (of.pending === 0 && !of.pending_more) return "–";
  return `${count(of.pending)}${of.pending_more ? " or more" : ""}`;
}
