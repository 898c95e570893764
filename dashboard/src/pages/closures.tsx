import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { Calm, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since, Until } from "../parts/time";
import { Turn } from "../parts/turn";
import { useLive } from "../state/live";
import { href, route, setQuery } from "../state/route";
import { Close } from "./close";
import { Open } from "./open";

type Closure = Schemas["Closure"];

/** What is closed for a time, where one closes and opens. */
export function Closures() {
  const { query } = route.value;
  const cursor = query.get("cursor") ?? "";
  const { data, failure, refresh } = useLive(`closures ${cursor}`, 2000, (ask) =>
    asked(api.GET("/admin/closures", { ...ask, params: { query: cursor === "" ? {} : { cursor } } })),
  );
  const opening = useSignal<Closure | undefined>(undefined);
  const closing = query.get("close");
  return (
    <>
      <Head title="Closures">
        <button type="button" class="main" onClick={() => setQuery({ close: "*" })}>
          Close locks…
        </button>
      </Head>
      <p class="soft">
        A closed lock rejects new requests. Holders keep it until they release, and waiters acquire it in order.
      </p>
      <Failed failure={failure} />
      {data ? <Standing all={data.closures} open={(c) => (opening.value = c)} /> : <Loading failure={failure} />}
      <Turn first="First page" at={cursor} next={data?.next_cursor} more="Next page" />
      <Shell id="curl" line={curl("GET", "/admin/closures")} />
      {closing !== null && (
        <Close
          locks={closing === "*" ? "" : closing}
          tenant={query.get("tenant") ?? ""}
          done={refresh}
          close={() => setQuery({ close: "", tenant: "" })}
        />
      )}
      {opening.value && <Open closure={opening.value} done={refresh} close={() => (opening.value = undefined)} />}
    </>
  );
}

function Standing({ all, open }: { all: Closure[]; open: (c: Closure) => void }) {
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No closed locks">
          Close locks before a migration or a repair: new requests get the end time and your reason. Use the button
          above.
        </Calm>
      </div>
    );
  }
  return (
    <Table caption="Closures, oldest first" columns={["Locks", "Opens", "Reason", "Closed", ""]}>
      {all.map((c) => (
        <tr key={c.id}>
          <td class="name">
            <a data-row href={href(["locks"], { search: c.locks, tenant: c.tenant })}>
              {c.locks}
            </a>
            <span class="under">{c.tenant}</span>
          </td>
          <td class="whole">
            <Until at={c.until} end />
          </td>
          <td class="text">
            {c.reason}
            {c.description && <span class="under">{c.description}</span>}
          </td>
          <td class="whole">
            <Since at={c.since} ago />
            <span class="under">by {c.by}</span>
          </td>
          <td class="act">
            <button type="button" aria-label={`Open ${c.locks}`} onClick={() => open(c)}>
              Open…
            </button>
          </td>
        </tr>
      ))}
    </Table>
  );
}
