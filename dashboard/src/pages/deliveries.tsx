import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { Badge, Loading, Trouble } from "../parts/signs";
import { Table } from "../parts/table";
import { Since, Until } from "../parts/time";
import { Turn } from "../parts/turn";
import { many, span } from "../parts/words";
import { useAction } from "../state/action";
import { useLive } from "../state/live";
import { route } from "../state/route";

const rows = 50;

/** What is to be sent and was sent last, with its attempts. */
export function Deliveries({ id }: { id: string }) {
  const cursor = route.value.query.get("cursor") ?? "";
  const query = { limit: rows, ...(cursor === "" ? {} : { cursor }) };
  const { data, failure, refresh } = useLive(`deliveries ${id} ${cursor}`, 2000, (signal) =>
    asked(api.GET("/webhooks/{id}/deliveries", { signal, params: { path: { id }, query } })),
  );
  const said = useSignal("");
  const action = useAction();
  const again = (delivery: string) =>
    action.run(async () => {
      const params = { path: { id, delivery } };
      await asked(api.POST("/webhooks/{id}/deliveries/{delivery}/redeliver", { params }));
      said.value = `${delivery} is sent again.`;
      refresh();
    });
  return (
    <section class="stack" aria-labelledby="deliveries">
      <div class="head">
        <h2 id="deliveries">Deliveries</h2>
        <span class="soft" role="status">
          {said.value}
        </span>
      </div>
      {failure && !failure.passing && <Trouble failure={failure} />}
      {action.failure && <Trouble failure={action.failure} />}
      {data ? <List all={data.deliveries} again={again} /> : !failure && <Loading />}
      <Turn first="Newest" at={cursor} next={data?.next_cursor} more={`Next ${rows}`} />
    </section>
  );
}

type Again = (delivery: string) => Promise<void>;

function List({ all, again }: { all: Schemas["Delivery"][]; again: Again }) {
  if (all.length === 0) {
    return <div class="sheet pad soft">Nothing is to be sent, and nothing was sent of late.</div>;
  }
  return (
    <Table caption="Deliveries, the newest first" columns={["State", "Event", "First sent", "Attempts", ""]}>
      {all.map((d) => (
        <Row key={d.id} of={d} again={again} />
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

function Row({ of, again }: { of: Schemas["Delivery"]; again: Again }) {
  const state = states[of.state];
  return (
    <tr data-row tabIndex={-1}>
      <td class="whole">
        <Badge kind={state.kind} sign={state.sign}>
          {of.state}
        </Badge>
        {of.next_attempt_at && (
          <span class="under">
            again <Until at={of.next_attempt_at} />
          </span>
        )}
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
        <button type="button" aria-label={`Send ${of.id} again`} onClick={() => void again(of.id)}>
          {of.state === "pending" ? "Send now" : "Send again"}
        </button>
      </td>
    </tr>
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
