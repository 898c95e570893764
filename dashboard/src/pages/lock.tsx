import { api, asked, base, type Schemas } from "../api/client";
import { Badge, Calm, Copy, Fence, Head, Loading, Trouble } from "../parts/signs";
import { Left, Since, Until } from "../parts/time";
import { count, many, quoted, span } from "../parts/words";
import { useLive } from "../state/live";
import { href } from "../state/route";

type View = Schemas["AdminLockView"];

/** One lock: who holds it, who stands in line, and how it has been. */
export function Lock({ tenant, name }: { tenant: string; name: string }) {
  const { data, failure } = useLive(`${tenant}/${name}`, 1000, (signal) =>
    asked(api.GET("/admin/locks/{tenant}/{name}", { signal, params: { path: { tenant, name } } })),
  );
  return (
    <>
      <p class="small">
        <a href={href(["locks"])}>Locks</a> <span class="soft">/ {tenant}</span>
      </p>
      <Head title={name}>
        {data && <State view={data} />}
        <a class="button" href={href(["events"], { tenant, locks: name })}>
          Events
        </a>
      </Head>
      {failure && !failure.passing && <Trouble failure={failure} />}
      {data ? <Seen view={data} /> : !failure && <Loading />}
    </>
  );
}

function State({ view }: { view: View }) {
  if (view.waiting > 0) {
    return (
      <Badge kind="wait" sign="○">
        {many(view.waiting, "waits", "wait")}
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

function Seen({ view }: { view: View }) {
  return (
    <>
      <section class="stack" aria-labelledby="holders">
        <div class="head">
          <h2 id="holders">{view.holding === 1 ? "Holder" : "Holders"}</h2>
          {view.holding + view.waiting > 0 && <Fence holding={view.holding} waiting={view.waiting} />}
        </div>
        <Holders view={view} />
      </section>
      <section class="stack" aria-labelledby="queue">
        <h2 id="queue">Queue</h2>
        <Queue view={view} />
      </section>
      <Figures figures={view.figures} />
      <Curl view={view} />
    </>
  );
}

function Holders({ view }: { view: View }) {
  if (view.holders.length === 0) {
    return (
      <div class="sheet">
        <Calm title="Nobody holds it">
          {view.fence
            ? `The newest fence that was handed out is ${view.fence}.`
            : "It was not in use since this replica started."}
        </Calm>
      </div>
    );
  }
  return (
    <ul class="columns">
      {view.holders.map((h) => (
        <li key={h.id} class="sheet pad stack" data-row tabIndex={-1}>
          <div class="head">
            <h3>{h.holder}</h3>
            <span class="soft">fence {h.fence}</span>
          </div>
          {h.expires_at && <Left until={h.expires_at} ttlSeconds={h.ttl_seconds} />}
          <dl class="fields small">
            <dt>Held for</dt>
            <dd>
              <Since at={h.since} />
            </dd>
            <dt>Lease</dt>
            <dd>{span(h.ttl_seconds * 1000)}, renewed by its client</dd>
            <dt>Mode</dt>
            <dd>
              {h.mode}
              {h.limit ? ` of ${h.limit}` : ""}
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

function Queue({ view }: { view: View }) {
  if (view.waiters.length === 0) return <div class="sheet pad soft">Nobody stands in line.</div>;
  return (
    <div class="sheet scroll">
      <table>
        <caption class="unseen">Who waits, in order</caption>
        <thead>
          <tr>
            <th scope="col">Position</th>
            <th scope="col">Waiter</th>
            <th scope="col">Waited</th>
            <th scope="col">Gives up</th>
            <th scope="col">Mode</th>
            <th scope="col" class="number">
              Fence to be
            </th>
          </tr>
        </thead>
        <tbody>
          {view.waiters.map((w) => (
            <Waiter key={w.id} of={w} />
          ))}
        </tbody>
      </table>
      {view.waiting > view.waiters.length && (
        <p class="pad soft">and {count(view.waiting - view.waiters.length)} more</p>
      )}
    </div>
  );
}

function Waiter({ of }: { of: Schemas["AdminWaiter"] }) {
  const meta = Object.entries(of.metadata ?? {});
  return (
    <tr data-row tabIndex={-1}>
      <td>{of.position}</td>
      <td>
        {of.holder}
        {of.async && <Badge>no connection</Badge>}
        {meta.length > 0 && <span class="under">{meta.map(([k, v]) => `${k}: ${v}`).join(", ")}</span>}
      </td>
      <td>
        <Since at={of.enqueued_at} />
      </td>
      <td>{of.wait_until ? <Until at={of.wait_until} /> : <span class="soft">–</span>}</td>
      <td>
        {of.mode}
        {of.limit ? ` of ${of.limit}` : ""}
        {of.set ? `, set of ${of.set}` : ""}
      </td>
      <td class="number">{of.number}</td>
    </tr>
  );
}

function Figures({ figures }: { figures: Schemas["AdminFigures"] }) {
  return (
    <section class="stack" aria-labelledby="figures">
      <h2 id="figures">
        How it has been <span class="soft small">as this replica saw it since it started</span>
      </h2>
      <div class="columns">
        <Distribution
          name="Waits"
          steps={figures.waits}
          of={figures.wait_seconds}
          none="Nobody has been granted it yet."
        />
        <Distribution
          name="Holds"
          steps={figures.holds}
          of={figures.hold_seconds}
          none="Nobody has given it back yet."
        />
        <div class="sheet pad stack">
          <h3>Lease</h3>
          <p>
            {many(figures.acquisitions, "grant")},{" "}
            {figures.expirations > 0 ? (
              <Badge kind="harm" sign="⚠">
                {many(figures.expirations, "lease")} ran out
              </Badge>
            ) : (
              "no lease ran out"
            )}
          </p>
          {figures.recommended_ttl_seconds !== undefined && (
            <p>
              Suggested TTL: <b>{span(figures.recommended_ttl_seconds * 1000)}</b>
            </p>
          )}
          <p class="soft">{figures.recommended_ttl_reason}</p>
        </div>
      </div>
    </section>
  );
}

interface DistributionOf {
  name: string;
  steps: Schemas["DistributionStep"][];
  of?: Schemas["Percentiles"] | undefined;
  none: string;
}

/** How long something took: bars for the eye, percentiles in words. */
function Distribution({ name, steps, of, none }: DistributionOf) {
  const highest = Math.max(...steps.map((s) => s.count));
  return (
    <div class="sheet pad stack">
      <h3>{name}</h3>
      {steps.length === 0 ? (
        <p class="soft">{none}</p>
      ) : (
        <dl class="fields small">
          {steps.map((s) => [
            <dt key={`t${s.up_to_seconds}`} class="number">
              up to {span(s.up_to_seconds * 1000)}
            </dt>,
            <dd key={`d${s.up_to_seconds}`} class="step">
              <span class="bar">
                <i style={{ transform: `scaleX(${s.count / highest})` }} />
              </span>
              {s.count}
            </dd>,
          ])}
        </dl>
      )}
      {of && (
        <p class="soft small">
          Half within {span(of.p50 * 1000)}, nine in ten within {span(of.p90 * 1000)}, 99 in 100 within{" "}
          {span(of.p99 * 1000)}
        </p>
      )}
    </div>
  );
}

/** The same from a shell. */
function Curl({ view }: { view: View }) {
  const line = `curl -s ${quoted(`${base}/admin/locks/${view.tenant}/${view.name}`)} -H "Authorization: Bearer $TOKEN"`;
  return (
    <section class="stack" aria-labelledby="curl">
      <div class="head">
        <h2 id="curl">From a shell</h2>
        <Copy text={line} />
      </div>
      <pre>{line}</pre>
    </section>
  );
}
