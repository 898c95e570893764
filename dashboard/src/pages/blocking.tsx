import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { TenantField } from "../parts/filter";
import { Badge, Calm, Failed, Head, Loading } from "../parts/signs";
import { Since } from "../parts/time";
import { count, many, span } from "../parts/words";
import { useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { holderPage, lockPage } from "./names";
import { type Node, nest } from "./tree";

/** How many trees there are on the screen, and how many lines of each until more is asked for. */
const trees = 50;
const lines = 8;

/** Who blocks whom: those in everybody's way first. */
export function Blocking() {
  const tenant = route.value.query.get("tenant") ?? "";
  const query = { limit: trees, ...(tenant ? { tenant } : {}) };
  const { data, failure } = useLive(`blocking ${tenant}`, 2000, (signal) =>
    asked(api.GET("/admin/blocking", { signal, params: { query } })),
  );
  return (
    <>
      <Head title="Blocking">
        {data && data.heads > 0 && (
          <Badge kind="wait" sign="○">
            {many(data.waiting, "waits", "wait")} because of {count(data.heads)}
          </Badge>
        )}
      </Head>
      {seesAll() && (
        <search class="filters">
          <TenantField first value={tenant} set={(v) => setQuery({ tenant: v })} />
        </search>
      )}
      <Failed failure={failure} />
      {data ? <Trees of={data} /> : !failure && <Loading />}
      <Shell
        id="curl"
        line={curl("GET", `/admin/blocking${tenant === "" ? "" : `?tenant=${encodeURIComponent(tenant)}`}`)}
      />
    </>
  );
}

function Trees({ of }: { of: Schemas["AdminBlocking"] }) {
  if (of.trees.length === 0) {
    return (
      <div class="sheet">
        <Calm title="Nobody is in anybody's way">Whoever waits for a lock stands here, below whom it waits for.</Calm>
      </div>
    );
  }
  return (
    <>
      {of.trees.map((t) => (
        <Tree key={`${t.tenant} ${t.holder} ${t.named ? "" : t.heads[0]?.id}`} of={t} />
      ))}
      {(of.truncated || of.heads > of.trees.length) && <p class="soft">There is more than is listed here.</p>}
    </>
  );
}

function Tree({ of }: { of: Schemas["BlockingTree"] }) {
  const all = useSignal(false);
  const shown = all.value ? of.waits : of.waits.slice(0, lines);
  return (
    <section class="sheet" aria-label={`Because of ${of.holder}`}>
      <div class="pad stack">
        <div class="head">
          <h2>
            <a data-row href={holderPage(of.tenant, of.holder)}>
              {of.holder}
            </a>{" "}
            <span class="soft small">{of.tenant}</span>
          </h2>
          {of.cycle && (
            <Badge kind="harm" sign="↻">
              waits in a circle
            </Badge>
          )}
          <Badge kind="wait" sign="○">
            {many(of.waiting, "waits", "wait")}
          </Badge>
          <span title="How long they have waited because of this holder, added up">
            blamed for <b>{span(of.blamed_seconds * 1000)}</b>
          </span>
        </div>
        <ul class="stack small">
          {of.heads.map((h) => (
            <li key={`${h.id} ${h.name}`}>
              {h.state === "held" ? "holds " : "keeps "}
              <a href={lockPage({ tenant: of.tenant, name: h.name })}>{h.name}</a>
              {h.sharing > 1 && ` with ${many(h.sharing - 1, "other")}`}
              <span class="soft">
                {h.state === "held" ? ", for " : " while it waits for another lock, for "}
                <Since at={h.since} />, fence {h.fence}
              </span>
            </li>
          ))}
        </ul>
      </div>
      <div class="tree">
        <Nodes of={nest(shown)} tenant={of.tenant} />
        {of.waits.length > lines && (
          <div class="pad">
            <button type="button" aria-expanded={all.value} onClick={() => (all.value = !all.value)}>
              {all.value ? "Show fewer" : `Show all ${of.waits.length}`}
            </button>
          </div>
        )}
        {of.waiting > of.waits.length && (
          <p class="pad soft">{many(of.waiting - of.waits.length, "further one")} not listed</p>
        )}
      </div>
    </section>
  );
}

function Nodes({ of, tenant }: { of: Node[]; tenant: string }) {
  return (
    <ul>
      {of.map(({ wait, below }) => (
        <li key={`${wait.id} ${wait.name}`}>
          <div class="node">
            <a href={holderPage(tenant, wait.holder)}>
              <b>{wait.holder}</b>
            </a>
            <span>
              waits for <a href={lockPage({ tenant, name: wait.name })}>{wait.name}</a>
              <span class="soft">, position {wait.position}</span>
            </span>
            <span class="soft small">
              because of this for <Since at={wait.blamed_since} />
            </span>
          </div>
          {below.length > 0 && <Nodes of={below} tenant={tenant} />}
        </li>
      ))}
    </ul>
  );
}
