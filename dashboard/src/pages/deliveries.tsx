import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api, asked, type PollInit, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { Badge, Failed, Loading, Trouble } from "../parts/signs";
import { Table } from "../parts/table";
import { Since, Until } from "../parts/time";
import { Turn } from "../parts/turn";
import { many, span } from "../parts/words";
import { useAction } from "../state/action";
import { type Live, useLive } from "../state/live";
import { route } from "../state/route";
import { useSteady } from "../state/steady";
import { lastFailure } from "./failing";

const page = 50;

/** The webhook: of the session's tenant, or of the tenant that an operator looks at. */
interface Which {
  id: string;
  tenant?: string;
}

/** Whether it is paused or disabled, so that nothing is sent until it goes on. */
interface Still {
  still?: boolean;
}

function load({ id, tenant }: Which, query: { limit: number; cursor?: string }, ask: PollInit) {
  if (tenant === undefined) {
    return asked(api.GET("/webhooks/{id}/deliveries", { ...ask, params: { path: { id }, query } }));
  }
  const path = { tenant, id };
  return asked(api.GET("/admin/webhooks/{tenant}/{id}/deliveries", { ...ask, params: { path, query } }));
}

function redeliver({ id, tenant }: Which, delivery: string) {
  if (tenant === undefined) {
    const path = { id, delivery };
    return asked(api.POST("/webhooks/{id}/deliveries/{delivery}/redeliver", { params: { path } }));
  }
  const path = { tenant, id, delivery };
  return asked(api.POST("/admin/webhooks/{tenant}/{id}/deliveries/{delivery}/redeliver", { params: { path } }));
}

/** Pending and recent deliveries, polled. */
export interface Sent extends Live<Schemas["DeliveryPage"]> {
  which: Which;
  /** Where it is asked for. */
  at: string;
  cursor: string;
  /** The last failed attempt in the answer. */
  why: Schemas["Attempt"] | undefined;
}

/** Asks for the deliveries of a webhook, on the page that the address names. */
export function useDeliveries(which: Which): Sent {
  const cursor = route.value.query.get("cursor") ?? "";
  const query = { limit: page, ...(cursor === "" ? {} : { cursor }) };
  const { id, tenant } = which;
  const at = tenant === undefined ? `/webhooks/${id}` : `/admin/webhooks/${tenant}/${id}`;
  const live = useLive(`deliveries ${at} ${cursor}`, 2000, (ask) => load(which, query, ask));
  // The last attempt may be on another page.
  const why = useRef<Schemas["Attempt"] | undefined>(undefined);
  why.current = lastFailure(live.data?.deliveries ?? [], why.current);
  return { ...live, which, at, cursor, why: why.current };
}

/** Pending and recent deliveries, with their attempts. */
export function Deliveries({ of, still = false }: { of: Sent } & Still) {
  const { which, at, cursor, data, failure, refresh } = of;
  const { rows, fresh, show, box } = useSteady<Schemas["Delivery"], HTMLDivElement>(
    data?.deliveries ?? [],
    (d) => d.id,
  );
  const said = useSignal("");
  const action = useAction();
  const again = (delivery: string) =>
    action.run(async () => {
      await redeliver(which, delivery);
      said.value = `Redelivery of ${delivery} ${still ? "starts when the webhook resumes" : "queued"}.`;
      refresh();
    });
  return (
    <section class="stack" aria-labelledby="deliveries">
      <div class="head steady">
        <h2 id="deliveries">Deliveries</h2>
        <span class="soft" role="status">
          {said.value}
        </span>
        {fresh > 0 && (
          <button type="button" onClick={show}>
            Show {fresh} new
          </button>
        )}
      </div>
      <Failed failure={failure} />
      {action.failure && <Trouble failure={action.failure} />}
      {data ? (
        <div class="stack" ref={box}>
          <List all={rows} still={still} again={again} />
        </div>
      ) : (
        <Loading failure={failure} />
      )}
      <Turn first="Newest" at={cursor} next={data?.next_cursor} more={`Next ${page}`} />
      <Shell id="deliveries-curl" line={lines(at, rows[0]?.id)} />
    </section>
  );
}

/** What lists deliveries from a shell, and if there is one, has it sent again. */
function lines(at: string, delivery: string | undefined): string {
  const list = curl("GET", `${at}/deliveries`);
  return delivery === undefined ? list : `${list}\n${curl("POST", `${at}/deliveries/${delivery}/redeliver`)}`;
}

type Again = (delivery: string) => Promise<void>;

function List({ all, still, again }: { all: readonly Schemas["Delivery"][]; still: boolean; again: Again }) {
  if (all.length === 0) {
    return (
      <div class="sheet pad soft">
        No pending or recent deliveries. They appear after the next event of a matching lock.
      </div>
    );
  }
  return (
    <Table caption="Deliveries, newest first" columns={["State", "Event", "Created", "Attempts", ""]}>
      {all.map((d) => (
        <Row key={d.id} of={d} still={still} again={again} />
      ))}
    </Table>
  );
}

const states: Record<Schemas["Delivery"]["state"], { kind: string; sign: string }> = {
  pending: { kind: "wait", sign: "○" },
  delivered: { kind: "held", sign: "✓" },
  failed: { kind: "harm", sign: "✕" },
  gone: { kind: "harm", sign: "✕" },
  expired: { kind: "", sign: "◔" },
};

export function Row({ of, still, again }: { of: Schemas["Delivery"]; still: boolean; again: Again }) {
  const state = states[of.state];
  return (
    <tr data-row tabIndex={-1}>
      <td class="whole">
        <Badge kind={state.kind} sign={state.sign}>
          {of.state}
        </Badge>
        <Next of={of} still={still} />
      </td>
      <td class="name">
        {of.type}
        <span class="under">
          {of.lock ? `${of.lock} · ` : ""}
          {of.id}
        </span>
      </td>
      <td class="whole">
        <Since at={of.created_at} ago />
      </td>
      <td class="text">
        {of.attempts.length === 0 ? (
          <span class="soft">{many(of.tried, "attempt")}</span>
        ) : (
          <details>
            <summary>{many(of.tried, "attempt")}</summary>
            <ol class="small">
              {of.attempts.map((a) => (
                <li key={a.at}>
                  <Since at={a.at} ago />: {described(a)}
                </li>
              ))}
            </ol>
          </details>
        )}
      </td>
      <td class="act">
        {!(still && of.state === "pending") && (
          <button type="button" aria-label={`Send ${of.id} again`} onClick={() => void again(of.id)}>
            {of.state === "pending" ? "Send now" : "Send again"}
          </button>
        )}
      </td>
    </tr>
  );
}

/** When it is tried next, if it is. */
function Next({ of, still }: { of: Schemas["Delivery"]; still: boolean }) {
  if (of.state !== "pending") return null;
  if (still) return <span class="under">when the webhook resumes</span>;
  if (!of.next_attempt_at) return null;
  return (
    <span class="under">
      retry <Until at={of.next_attempt_at} />
    </span>
  );
}

/** What came of one attempt. */
export function described(a: Schemas["Attempt"]): string {
  const parts: string[] = [a.outcome];
  if (a.error) parts.push(a.error);
  else if (a.status !== undefined) parts.push(`status ${a.status}`);
  parts.push(`took ${span(a.took_seconds * 1000)}`);
  if (a.clock_skew_seconds !== undefined) {
    const off = span(Math.abs(a.clock_skew_seconds) * 1000);
    parts.push(`the receiver's clock is ${off} ${a.clock_skew_seconds > 0 ? "ahead" : "behind"}`);
  }
  return parts.join(", ");
}
