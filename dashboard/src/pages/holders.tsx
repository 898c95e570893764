import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { FilterField, TenantField, whole } from "../parts/filter";
import { PaceBadge, paceAt } from "../parts/pace";
import { Calm, EntryState, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count, many, others, span } from "../parts/words";
import { second, useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { seesAll, session } from "../state/session";
import { LongestHeld } from "./longest-held";
import { holderPage, lockPage } from "./names";
import { RevokeAll } from "./revoke-all";

type Holdings = Schemas["AdminHoldings"];

/** The most that is listed, and so the most that is revoked at a time. */
const most = 200;

/** What one worker holds and waits for, over all locks. */
export function Holders() {
  const { query } = route.value;
  const holder = query.get("holder") ?? "";
  const tenant = query.get("tenant") || (holder === "" ? "" : (session.value?.tenant ?? ""));
  return (
    <>
      <Head title="Holders" called={holder || "Holders"} />
      <search class="filters">
        <FilterField label="Holder" first placeholder={whole} value={holder} set={(v) => setQuery({ holder: v })} />
        {seesAll() && <TenantField value={tenant} set={(v) => setQuery({ tenant: v })} />}
      </search>
      {holder === "" ? <Choose tenant={tenant} /> : <One key={`${tenant} ${holder}`} tenant={tenant} holder={holder} />}
    </>
  );
}

/** Shown until a holder is chosen: those of a tenant or of all. */
function Choose({ tenant }: { tenant: string }) {
  return (
    <>
      <Blamed tenant={tenant} />
      <LongestHeld tenant={tenant} />
    </>
  );
}

/** The holders that hang, or at whose locks most wait. */
function Blamed({ tenant }: { tenant: string }) {
  const query = tenant === "" ? {} : { tenant };
  const { data, failure } = useLive(`overview ${query.tenant ?? ""}`, second, (ask) =>
    asked(api.GET("/admin/overview", { ...ask, params: { query } })),
  );
  const held = data?.blockers.flatMap((b) => (b.holder ? [{ ...b, by: b.holder }] : [])) ?? [];
  return (
    <>
      <Failed failure={failure} />
      {held.length > 0 && (
        <section class="stack" aria-labelledby="blamed">
          <h2 id="blamed">Top blockers</h2>
          <Table
            caption="Holders of the most contended locks"
            columns={["Holder", "Lock", { number: "Waiting" }, "Held for"]}
          >
            {held.map((b) => (
              <tr key={`${b.tenant}/${b.name}`}>
                <td class="name">
                  <a data-row href={holderPage(b.tenant, b.by.holder)}>
                    {b.by.holder}
                  </a>
                  {b.holding > 1 && <span class="under">{others(b.holding)}</span>} <PaceBadge {...paceAt(b, b.by)} />
                  <span class="under">{b.tenant}</span>
                </td>
                <td class="name">
                  <a href={lockPage(b)}>{b.name}</a>
                </td>
                <td class="number">{count(b.waiting)}</td>
                <td>
                  <Since at={b.by.since} />
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
    </>
  );
}

function One({ tenant, holder }: { tenant: string; holder: string }) {
  const query = { tenant, holder, limit: most };
  const look = () => asked(api.GET("/admin/holders", { params: { query } }));
  const { data, failure, refresh } = useLive(`holder ${tenant} ${holder}`, second, (ask) =>
    asked(api.GET("/admin/holders", { ...ask, params: { query } })),
  );
  const seen = useSignal<Holdings | undefined>(undefined);
  const path = `/admin/holders?${new URLSearchParams({ tenant, holder })}`;
  return (
    <>
      <Failed failure={failure} />
      {data ? <Seen of={data} revoke={() => (seen.value = data)} /> : <Loading failure={failure} />}
      <Shell id="curl" line={curl("GET", path)} />
      {seen.value && <RevokeAll seen={seen.value} look={look} close={() => (seen.value = undefined)} done={refresh} />}
    </>
  );
}

function Seen({ of, revoke }: { of: Holdings; revoke: () => void }) {
  if (of.entries.length === 0) {
    return (
      <div class="sheet">
        <Calm title={`No entries of ${of.holder}`}>
          It holds no lock of {of.tenant} and waits for none. Check the name: it must match exactly.
        </Calm>
      </div>
    );
  }
  return (
    <section class="stack" aria-labelledby="entries">
      <div class="head">
        <h2 id="entries">{of.holder}</h2>
        <span class="soft">{had(of)}</span>
        <button type="button" class="harm" onClick={revoke}>
          {of.truncated ? `Revoke the first ${count(of.entries.length)}…` : "Revoke all…"}
        </button>
      </div>
      <Table
        caption={`What ${of.holder} holds and waits for`}
        columns={["State", "Locks", "For", "Lease", { number: "Fence" }]}
        more={of.truncated && `It has more than these ${many(of.entries.length, "entry", "entries")}.`}
      >
        {of.entries.map((e) => (
          <Row key={e.id} of={e} tenant={of.tenant} />
        ))}
      </Table>
    </section>
  );
}

/** So many entries of a holder are counted. */
const counted = 2000;

/** How much a holder has, and whether all of it is listed. */
export function had(of: Holdings): string {
  const all = `holds ${count(of.holding)}, waits for ${count(of.waiting)}`;
  if (!of.truncated) return all;
  const listed = `; the first ${count(of.entries.length)} are listed`;
  return of.holding + of.waiting < counted ? all + listed : `has ${count(counted)} or more entries${listed}`;
}

export function Row({ of, tenant }: { of: Schemas["AdminEntry"]; tenant: string }) {
  return (
    <tr>
      <td>
        <EntryState held={of.state === "held"} />
        {of.any && (
          <span class="under">
            any {of.any} of {of.set}
          </span>
        )}
        {!of.named && <span class="under">name from its token</span>}
      </td>
      <td class="name">
        {of.locks.map((l) => (
          <span key={l.name} class="each">
            <a data-row href={lockPage({ tenant, name: l.name })}>
              {l.name}
            </a>
            <span class="soft">
              {" "}
              {l.mode === "exclusive" ? "" : l.mode}
              {l.state === of.state ? "" : ` ${l.state}`}
              {of.any && l.position ? ` position ${l.position}` : ""}
            </span>
          </span>
        ))}
      </td>
      <td>
        <Since at={of.since ?? of.enqueued_at} />
      </td>
      <td>{span(of.ttl_seconds * 1000)}</td>
      <td class="number">{of.fence}</td>
    </tr>
  );
}
