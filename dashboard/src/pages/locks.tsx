import { api, asked, type Schemas } from "../api/client";
import { acquire } from "../parts/curl";
import { FilterField, TenantField, whole } from "../parts/filter";
import { Hint } from "../parts/hint";
import { Badge, Calm, Closed, Failed, Fence, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Left, Since } from "../parts/time";
import { Turn } from "../parts/turn";
import { count, many, others } from "../parts/words";
import { second, useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { useSteady } from "../state/steady";
import { holderPage, lockPage } from "./names";

const rows = 100;

type Sort = "name" | "waiters" | "oldest_wait" | "held_for" | "utilization";
type Order = Sort | `-${Sort}`;
const sorts: readonly string[] = ["name", "waiters", "oldest_wait", "held_for", "utilization"];

interface Filter {
  search?: string;
  tenant?: string;
  state?: "held" | "contended";
  holder?: string;
  sort: Order;
  cursor?: string;
}

/** Reads the address. What the server would not know is left out. */
export function filterOf(query: URLSearchParams): Filter {
  const f: Filter = { sort: "-waiters" };
  const sort = query.get("sort") ?? "";
  if (sorts.includes(sort.replace(/^-/, ""))) f.sort = sort as Order;
  for (const name of ["search", "tenant", "holder", "cursor"] as const) {
    const value = query.get(name);
    if (value) f[name] = value;
  }
  const state = query.get("state");
  if (state === "held" || state === "contended") f.state = state;
  return f;
}

/** All locks in use, as a table. */
export function Locks() {
  const filter = filterOf(route.value.query);
  const { data, failure } = useLive(`locks ${JSON.stringify(filter)}`, second, (ask) =>
    asked(api.GET("/admin/locks", { ...ask, params: { query: { ...filter, limit: rows } } })),
  );
  return (
    <>
      <Head title="Locks">{data && <span class="soft">{many(data.matching, "lock")}</span>}</Head>
      <Filters filter={filter} />
      <Failed failure={failure} />
      {data ? (
        <Rows key={JSON.stringify(filter)} page={data} sort={filter.sort} filtered={isFiltered(filter)} />
      ) : (
        <Loading failure={failure} />
      )}
      <Turn first="First page" at={filter.cursor} next={data?.next_cursor} more={`Next ${rows}`} />
    </>
  );
}

function isFiltered(f: Filter): boolean {
  return (f.search ?? f.tenant ?? f.state ?? f.holder) !== undefined;
}

const clear = (): void => setQuery({ search: "", tenant: "", state: "", holder: "", cursor: "" });

function Filters({ filter }: { filter: Filter }) {
  const set = (name: string) => (value: string) => setQuery({ [name]: value, cursor: "" });
  return (
    <search class="filters">
      <FilterField label="Name" first placeholder="Part, or orders:*" value={filter.search ?? ""} set={set("search")} />
      <label>
        State
        <select value={filter.state ?? ""} onChange={(e) => set("state")(e.currentTarget.value)}>
          <option value="">In use</option>
          <option value="contended">With waiters</option>
          <option value="held">Held</option>
        </select>
      </label>
      <FilterField label="Holder" placeholder={whole} value={filter.holder ?? ""} set={set("holder")} />
      {seesAll() && <TenantField value={filter.tenant ?? ""} set={set("tenant")} />}
    </search>
  );
}

const keyOf = (l: Schemas["AdminLock"]): string => `${l.tenant}/${l.name}`;

function Rows({ page, sort, filtered }: { page: Schemas["AdminLockPage"]; sort: Order; filtered: boolean }) {
  const { rows: shown, fresh, show, box } = useSteady<Schemas["AdminLock"], HTMLDivElement>(page.locks, keyOf);
  if (page.locks.length === 0 && shown.length === 0) {
    return (
      <div class="sheet">
        {filtered ? (
          <Calm title="No matches">
            No lock in use matches these filters.{" "}
            <button type="button" onClick={clear}>
              Clear the filters
            </button>
          </Calm>
        ) : (
          <Calm title="No locks in use" line={acquire("orders:42")}>
            A lock appears here while a client holds it or waits for it. Acquire one:
          </Calm>
        )}
      </div>
    );
  }
  const there = new Set(page.locks.map(keyOf));
  return (
    <div class="steady" ref={box}>
      {fresh > 0 && (
        <button type="button" class="fresh" onClick={show}>
          Show {fresh} new
        </button>
      )}
      <Table
        caption="Locks in use"
        columns={[
          <Column key="name" by="name" sort={sort} name="Lock" />,
          "Held by",
          <Column key="held_for" by="held_for" sort={sort} name="Held for" />,
          "Lease",
          <Column key="waiters" by="waiters" sort={sort} name="Waiting" />,
          <Column key="oldest_wait" by="oldest_wait" sort={sort} name="Oldest wait" />,
          <Column key="utilization" by="utilization" sort={sort} name="In use, 5 min" number />,
        ]}
        class="locks"
      >
        {shown.map((l) => (
          <Row key={keyOf(l)} lock={l} gone={!there.has(keyOf(l))} />
        ))}
      </Table>
    </div>
  );
}

/** A column by which one can sort: largest first, but names from A. */
function Column({ by, sort, name, number }: { by: Sort; sort: Order; name: string; number?: boolean }) {
  const active = sort.replace(/^-/, "") === by;
  const down = sort.startsWith("-");
  const first: Order = by === "name" ? by : `-${by}`;
  const next = active ? (down ? by : `-${by}`) : first;
  return (
    <th scope="col" class={number ? "number" : ""} aria-sort={active ? (down ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => setQuery({ sort: next, cursor: "" })}>
        {name}
        <span aria-hidden="true">{active ? (down ? "↓" : "↑") : ""}</span>
      </button>
      {by === "utilization" && <Hint term="used" />}
    </th>
  );
}

const inUse = (lock: Schemas["AdminLock"]): string => `${Math.round(lock.utilization * 100)} %`;

/** A row. While the user is at the rows, a lock that has left the page keeps its last state. */
export function Row({ lock, gone = false }: { lock: Schemas["AdminLock"]; gone?: boolean }) {
  const first = lock.holders[0];
  return (
    <tr class={gone ? "gone" : ""}>
      <td class="name">
        <a data-row href={lockPage(lock)}>
          {lock.name}
        </a>
        <span class="under">
          {lock.tenant} <Closed of={lock.closed} /> {gone && <Badge>no longer in use</Badge>}
        </span>
      </td>
      <td class="text">
        {first ? (
          <a href={holderPage(lock.tenant, first.holder)}>{first.holder}</a>
        ) : (
          <span class="soft">no holder</span>
        )}
        <Terms lock={lock} />
      </td>
      <td>{first && !gone && <Since at={first.since} />}</td>
      <td class="lease">
        {first?.expires_at && !gone ? (
          <Left until={first.expires_at} ttlSeconds={first.ttl_seconds} />
        ) : (
          <span class="soft">–</span>
        )}
      </td>
      <td>
        {lock.waiting > 0 ? count(lock.waiting) : <span class="soft">0</span>}
        {lock.waiting > 0 && (
          <span class="under">
            <Fence holding={lock.holding} waiting={lock.waiting} most={10} />
          </span>
        )}
      </td>
      <td>{lock.oldest_since && !gone ? <Since at={lock.oldest_since} /> : "–"}</td>
      <td class="number">{inUse(lock)}</td>
    </tr>
  );
}

/** With which fence, in which mode and with how many others the first one holds a lock; the last fence of a free one. */
function Terms({ lock }: { lock: Schemas["AdminLock"] }) {
  const first = lock.holders[0];
  if (!first) return lock.fence ? <span class="under">last fence {lock.fence}</span> : null;
  return (
    <span class="under">
      fence {first.fence}
      {first.mode === "exclusive" ? "" : `, ${first.mode}`}
      {first.limit ? ` of ${first.limit}` : ""}
      {lock.holding > 1 ? `, ${others(lock.holding)}` : ""}
    </span>
  );
}
