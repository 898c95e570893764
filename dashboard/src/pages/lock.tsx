import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { acquire, curl, Shell } from "../parts/curl";
import { Hint } from "../parts/hint";
import { Badge, Calm, Failed, Fence, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Left, Since, Until } from "../parts/time";
import { count, many, span } from "../parts/words";
import { second, useLive } from "../state/live";
import { href } from "../state/route";
import { session } from "../state/session";
import { Close } from "./close";
import { Figures } from "./figures";
import { History } from "./history";
import { holderPage } from "./names";
import { Permits, terms } from "./permits";
import { Revoke, type Target } from "./revoke";
import { StaleWrites } from "./stale-writes";
import { Line } from "./sure";

/** How many that wait are listed. */
const rows = 100;

type Revoking = (target: Target) => void;
type View = Schemas["AdminLockView"];

/** One lock: its holders, its waiters, and its history. */
export function Lock({ tenant, name }: { tenant: string; name: string }) {
  const { data, failure, refresh } = useLive(`lock ${tenant}/${name}`, second, (ask) =>
    asked(
      api.GET("/admin/locks/{tenant}/{name}", { ...ask, params: { path: { tenant, name }, query: { limit: rows } } }),
    ),
  );
  const target = useSignal<Target | undefined>(undefined);
  const closing = useSignal(false);
  return (
    <>
      <p class="small">
        <a href={href(["locks"])}>Locks</a> <span class="soft">/ {tenant}</span>
      </p>
      <Head title={name}>
        {data && <State view={data} />}
        <button type="button" onClick={() => (closing.value = true)}>
          Close lock…
        </button>
        <a class="button" href={href(["events"], { tenant, locks: name })}>
          Events
        </a>
      </Head>
      <Failed failure={failure} />
      {data ? <Seen view={data} revoke={(t) => (target.value = t)} /> : <Loading failure={failure} />}
      {data && target.value && (
        <Revoke
          target={target.value}
          view={data}
          done={refresh}
          close={() => (target.value = undefined)}
          closeLock={() => (closing.value = true)}
        />
      )}
      {closing.value && <Close locks={name} tenant={tenant} done={refresh} close={() => (closing.value = false)} />}
    </>
  );
}

function State({ view }: { view: View }) {
  if (view.waiting > 0) {
    return (
      <Badge kind="wait" sign="○">
        {count(view.waiting)} waiting
      </Badge>
    );
  }
  return view.holding > 0 ? (
    <Badge kind="held" sign="●">
      Held
    </Badge>
  ) : (
    <Badge sign="–">Free</Badge>
  );
}

function Seen({ view, revoke }: { view: View; revoke: Revoking }) {
  return (
    <>
      {view.closed && (
        <p class="note wait" role="status">
          <span aria-hidden="true">‖ </span>
          <b>Closed.</b> It rejects new requests and opens <Until at={view.closed.until} end />. Reason:{" "}
          {view.closed.reason} <a href={href(["closures"])}>Closures</a>
        </p>
      )}
      <section class="stack" aria-labelledby="holders">
        <div class="head">
          <h2 id="holders">{view.holding === 1 ? "Holder" : "Holders"}</h2>
          {view.holding + view.waiting > 0 && <Fence holding={view.holding} waiting={view.waiting} />}
        </div>
        <Permits view={view} />
        {view.release_requested && <Asked of={view.release_requested} />}
        <Holders view={view} revoke={revoke} />
      </section>
      <section class="stack" aria-labelledby="queue">
        <h2 id="queue">Queue</h2>
        <Queue view={view} revoke={revoke} />
      </section>
      {view.stale_writes && <StaleWrites all={view.stale_writes} />}
      <Figures figures={view.figures} held={view.holding > 0} />
      <History tenant={view.tenant} name={view.name} />
      <Shell id="curl" line={curl("GET", `/admin/locks/${view.tenant}/${view.name}`)} />
    </>
  );
}

function Asked({ of }: { of: Schemas["ReleaseRequested"] }) {
  return (
    <p class="note wait" role="status">
      <span aria-hidden="true">? </span>
      <b>{of.by}</b> asked for a release <Since at={of.since} ago />
      {of.waiting > 1 && `, and ${many(of.waiting - 1, "other", "others")} since`}.
    </p>
  );
}

/** Whether the token of the session can acquire the lock: it is of the same tenant. */
const own = (view: View): boolean => view.tenant === session.value?.tenant;

function Holders({ view, revoke }: { view: View; revoke: Revoking }) {
  if (view.holders.length === 0) {
    return (
      <div class="sheet">
        <Calm title="Free" line={own(view) ? acquire(view.name) : undefined}>
          {view.fence
            ? `No holder. The last grant had fence ${view.fence}.`
            : "No holder, and no use recorded on this replica."}
        </Calm>
      </div>
    );
  }
  return (
    <ul class="columns">
      {view.holders.map((h) => (
        <li key={h.id} class="sheet pad stack" data-row tabIndex={-1}>
          <div class="head">
            <h3>
              <a href={holderPage(view.tenant, h.holder)}>{h.holder}</a>
            </h3>
            <span class="soft">
              fence {h.fence}
              <Hint term="fence" />
            </span>
            <RevokeButton target={{ ...h, held: true }} revoke={revoke} />
          </div>
          {h.expires_at && <Left until={h.expires_at} ttlSeconds={h.ttl_seconds} />}
          <dl class="fields small">
            <dt>Held for</dt>
            <dd>
              <Since at={h.since} />
            </dd>
            <dt>
              Lease
              <Hint term="lease" />
            </dt>
            <dd>{span(h.ttl_seconds * 1000)} TTL</dd>
            <dt>
              Mode
              <Hint term="mode" />
            </dt>
            <dd>
              {terms(h)}
              {h.set ? `, in a set of ${many(h.set, "lock")}` : ""}
            </dd>
            <Metadata of={h.metadata} />
          </dl>
        </li>
      ))}
    </ul>
  );
}

function Metadata({ of = {} }: { of?: Record<string, string> | undefined }) {
  return <>{Object.entries(of).map(([k, v]) => [<dt key={`k${k}`}>{k}</dt>, <dd key={`v${k}`}>{v}</dd>])}</>;
}

function Queue({ view, revoke }: { view: View; revoke: Revoking }) {
  if (view.waiters.length === 0) {
    return (
      <div class="sheet pad stack">
        <p class="soft">No waiters.</p>
        {view.holding > 0 && own(view) && (
          <Line title="Wait for this lock with curl" text={acquire(view.name, { wait_seconds: 60 })} />
        )}
      </div>
    );
  }
  return (
    <Table
      caption="Waiters, in order"
      columns={["Position", "Waiter", "Waited", "Wait ends", "Mode", { number: "Fence when granted" }, ""]}
      more={view.waiting > view.waiters.length && `and ${count(view.waiting - view.waiters.length)} more`}
    >
      {view.waiters.map((w) => (
        <Waiter key={w.id} of={w} tenant={view.tenant} revoke={revoke} />
      ))}
    </Table>
  );
}

function Waiter({ of, tenant, revoke }: { of: Schemas["AdminWaiter"]; tenant: string; revoke: Revoking }) {
  const meta = Object.entries(of.metadata ?? {});
  return (
    <tr data-row tabIndex={-1}>
      <td>{of.position}</td>
      <td class="name">
        <a href={holderPage(tenant, of.holder)}>{of.holder}</a>
        {of.async && <Badge>async</Badge>}
        {meta.length > 0 && <span class="under">{meta.map(([k, v]) => `${k}: ${v}`).join(", ")}</span>}
      </td>
      <td>
        <Since at={of.enqueued_at} />
      </td>
      <td>{of.wait_until ? <Until at={of.wait_until} /> : <span class="soft">–</span>}</td>
      <td>
        {terms(of)}
        {of.any ? `, any ${of.any} of ${of.set}` : of.set ? `, set of ${of.set}` : ""}
      </td>
      <td class="number">{of.number}</td>
      <td class="act">
        <RevokeButton target={{ ...of, fence: of.number, held: false }} revoke={revoke} />
      </td>
    </tr>
  );
}

/** Takes the entry as it is on the screen now: that is what may be revoked, and no other. */
function RevokeButton({ target, revoke }: { target: Target; revoke: Revoking }) {
  const { id, holder, fence, held, set } = target;
  return (
    <button
      type="button"
      class="harm"
      aria-label={`Revoke ${holder}, fence ${fence}`}
      onClick={() => revoke({ id, holder, fence, held, set })}
    >
      Revoke…
    </button>
  );
}
