import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { TenantField } from "../parts/filter";
import { Hint } from "../parts/hint";
import { Pace, PaceBadge, type PaceOf } from "../parts/pace";
import { Badge, Calm, Failed, Head, Loading } from "../parts/signs";
import { Since } from "../parts/time";
import { count, many, span } from "../parts/words";
import { useLive } from "../state/live";
import { route, setQuery } from "../state/route";
import { seesAll } from "../state/session";
import { holderPage, lockPage } from "./names";
import { RevokeAt, type RevokeAtOf } from "./revoke-at";
import { type Node, nest } from "./tree";

/** How many trees there are on the screen, and how many lines of each until more is asked for. */
const trees = 50;
const lines = 8;

/** The trees of blocking holders, the widest first. */
export function Blocking() {
  const tenant = route.value.query.get("tenant") ?? "";
  const query = { limit: trees, ...(tenant ? { tenant } : {}) };
  const seen = useSignal<Seen | undefined>(undefined);
  const { data, failure, refresh } = useLive(`blocking ${tenant}`, 2000, (ask) =>
    asked(api.GET("/admin/blocking", { ...ask, params: { query } })),
  );
  return (
    <>
      <Head title="Blocking">
        {data && data.heads > 0 && (
          <Badge kind="wait" sign="○">
            {count(data.waiting)} waiting behind {many(data.heads, "holder")}
          </Badge>
        )}
      </Head>
      {seesAll() && (
        <search class="filters">
          <TenantField first value={tenant} set={(v) => setQuery({ tenant: v })} />
        </search>
      )}
      <Failed failure={failure} />
      {data ? <Trees of={data} revoke={(t, h) => (seen.value = seenAs(t, h))} /> : <Loading failure={failure} />}
      <Shell
        id="curl"
        line={curl("GET", `/admin/blocking${tenant === "" ? "" : `?tenant=${encodeURIComponent(tenant)}`}`)}
      />
      {seen.value && <RevokeAt {...seen.value} done={refresh} close={() => (seen.value = undefined)} />}
    </>
  );
}

/** An entry as it was when its button was pressed; the lists go on changing. */
type Seen = Pick<RevokeAtOf, "tenant" | "name" | "target">;
type Revoking = (of: TreeOf, h: HeadOf) => void;

function seenAs(of: TreeOf, { id, name, fence, state, set }: HeadOf): Seen {
  return { tenant: of.tenant, name, target: { id, holder: of.holder, fence, held: state === "held", set } };
}

function Trees({ of, revoke }: { of: Schemas["AdminBlocking"]; revoke: Revoking }) {
  if (of.trees.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No waiters">
          When a request waits for a lock, it appears here below the holder that blocks it.
        </Calm>
      </div>
    );
  }
  return (
    <>
      {worstFirst(of.trees).map((t) => (
        <Tree key={`${t.tenant} ${t.holder} ${t.named ? "" : t.heads[0]?.id}`} of={t} revoke={revoke} />
      ))}
      {(of.truncated || of.heads > of.trees.length) && <p class="soft">The list is incomplete: there are more.</p>}
    </>
  );
}

type TreeOf = Schemas["BlockingTree"];
type HeadOf = Schemas["BlockingHead"];

/** When the longest listed wait of a tree began. */
export function oldestOf(of: Pick<TreeOf, "waits">): string | undefined {
  return of.waits.reduce<string | undefined>((old, w) => (old && old < w.enqueued_at ? old : w.enqueued_at), undefined);
}

/** Whether one of the holder's locks does not change hands any more. */
const hangs = (of: TreeOf): boolean => of.heads.some((h) => h.hangs);

/**
 * Sorts holders that hang first, then by the number of waiters, as the overview does, then by the longest wait. Not
 * by blamed time: that restarts with each hand-over, and the trees would change places all the time.
 */
export function worstFirst(trees: readonly TreeOf[]): TreeOf[] {
  const since = (of: TreeOf): number => Date.parse(oldestOf(of) ?? "") || Number.MAX_VALUE;
  return [...trees].sort(
    (a, b) =>
      Number(hangs(b)) - Number(hangs(a)) ||
      b.waiting - a.waiting ||
      since(a) - since(b) ||
      (a.holder < b.holder ? -1 : 1),
  );
}

/** What keeps the waiters of a head waiting. */
function paceOf(of: TreeOf, h: HeadOf): PaceOf {
  const behind = of.waits.filter((w) => w.behind === h.id && w.name === h.name);
  return { hangs: h.hangs, since: h.since, usual: h.usual_hold_seconds, oldest: oldestOf({ waits: behind }) };
}

/** The holder that blocks the others. */
function Cause({ of }: { of: TreeOf }) {
  return (
    <h2>
      <a data-row href={holderPage(of.tenant, of.holder)}>
        {of.holder}
      </a>{" "}
      <span class="soft small">{of.tenant}</span>
    </h2>
  );
}

const states = { held: "holds ", reserved: "reserves " } as const;
const since = { held: " for ", reserved: " while it waits for another lock, for " } as const;

function Tree({ of, revoke }: { of: TreeOf; revoke: Revoking }) {
  const all = useSignal(false);
  const shown = all.value ? of.waits : of.waits.slice(0, lines);
  const oldest = oldestOf(of);
  const blamed = of.heads.find((h) => h.hangs) ?? of.heads[0];
  return (
    <section class="sheet" aria-label={`Blocked by ${of.holder}`}>
      <div class="pad stack">
        <div class="head">
          <Cause of={of} />
          {of.cycle && (
            <Badge kind="harm" sign="↻">
              deadlock
            </Badge>
          )}
          {blamed && blamed.state === "held" && <PaceBadge {...paceOf(of, blamed)} />}
          <Badge kind="wait" sign="○">
            {count(of.waiting)} waiting
          </Badge>
          {oldest && (
            <span>
              longest for{" "}
              <b>
                <Since at={oldest} />
              </b>
            </span>
          )}
          <span>
            total time blocked by this holder <b>{span(of.blamed_seconds * 1000)}</b>
            <Hint term="blocked" />
          </span>
        </div>
        <ul class="stack small">
          {of.heads.map((h) => (
            <li key={`${h.id} ${h.name}`} class="head">
              <div>
                {states[h.state]}
                <a href={lockPage({ tenant: of.tenant, name: h.name })}>{h.name}</a>
                {h.sharing > 1 && ` with ${many(h.sharing - 1, "other")}`}
                <span class="soft">
                  {since[h.state]}
                  <Since at={h.since} />
                  {`, fence ${h.fence}`}
                </span>
                {h.state === "held" && (
                  <div>
                    <Pace {...paceOf(of, h)} />
                  </div>
                )}
              </div>
              <button
                type="button"
                class="harm"
                aria-label={`Revoke ${of.holder} at ${h.name}`}
                onClick={() => revoke(of, h)}
              >
                Revoke…
              </button>
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
        {of.waiting > of.waits.length && <p class="pad soft">{count(of.waiting - of.waits.length)} more not listed</p>}
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
              blocked for <Since at={wait.blamed_since} />
            </span>
          </div>
          {below.length > 0 && <Nodes of={below} tenant={tenant} />}
        </li>
      ))}
    </ul>
  );
}
