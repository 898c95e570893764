import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Failed, Head, Loading, Trouble } from "../parts/signs";
import { Since } from "../parts/time";
import { useAction } from "../state/action";
import { type Live, useLive } from "../state/live";
import { href } from "../state/route";
import { session } from "../state/session";
import { DeleteWebhook } from "./delete-webhook";
import { Deliveries, useDeliveries } from "./deliveries";
import { Failing } from "./failing";
import { stopped } from "./pause-webhook";
import { Rotate } from "./rotate";
import { Sending, told } from "./sending";
import { Line } from "./sure";
import { mayUseWebhooks, NoScope } from "./webhooks";
import { pending } from "./webhooks-all";

/** One subscription, with its recent and pending deliveries; or the tenant's callbacks. */
export function Webhook({ id }: { id: string }) {
  return (
    <>
      <p class="small">
        <a href={href(["webhooks"])}>Webhooks</a>
      </p>
      {!mayUseWebhooks() ? <NoScope /> : id === "callbacks" ? <Callbacks /> : <One key={id} id={id} />}
    </>
  );
}

function Callbacks() {
  const sent = useDeliveries({ id: "callbacks" });
  return (
    <>
      <Head title="Callbacks" />
      <p class="soft">Deliveries to the callback_url of lock requests, for all locks of the tenant.</p>
      <Deliveries of={sent} />
    </>
  );
}

function One({ id }: { id: string }) {
  const { data, failure, refresh } = useLive(`webhook ${id}`, 2000, (ask) =>
    asked(api.GET("/webhooks/{id}", { ...ask, params: { path: { id } } })),
  );
  return (
    <>
      <Head title={data?.url ?? "Webhook"} called="Webhook">
        {data && <Sending of={data} />}
      </Head>
      <Failed failure={failure} />
      {data ? <Seen of={data} refresh={refresh} /> : <Loading failure={failure} />}
    </>
  );
}

/** The state of a webhook from the operators' API: only that has the pending deliveries. */
function useHow(id: string): Live<Schemas["AdminWebhook"]> {
  const tenant = session.value?.tenant ?? "";
  return useLive(`state ${tenant} ${id}`, 5000, (ask) =>
    asked(api.GET("/admin/webhooks/{tenant}/{id}", { ...ask, params: { path: { tenant, id } } })),
  );
}

function Seen({ of, refresh }: { of: Schemas["Webhook"]; refresh: () => void }) {
  const how = useHow(of.id);
  const state = how.data;
  const sent = useDeliveries({ id: of.id });
  return (
    <>
      <Failing of={of} why={sent.why} state={state} />
      <Actions
        of={of}
        refresh={() => {
          refresh();
          how.refresh();
        }}
      />
      <dl class="sheet pad fields">
        {of.description && (
          <>
            <dt>Description</dt>
            <dd>{of.description}</dd>
          </>
        )}
        <dt>Locks</dt>
        <dd>{of.locks}</dd>
        <dt>Events</dt>
        <dd>{told(of.events)}</dd>
        {state && (
          <>
            <dt>Pending</dt>
            <dd>{pending(state)}</dd>
          </>
        )}
        <dt>Created</dt>
        <dd>
          <Since at={of.created_at} ago /> by {of.created_by}
        </dd>
        <dt>Secret</dt>
        <dd>
          {of.rotated_at ? (
            <>
              rotated <Since at={of.rotated_at} ago />
            </>
          ) : (
            "never rotated"
          )}
        </dd>
      </dl>
      <Deliveries of={sent} still={stopped(of)} />
    </>
  );
}

function Actions({ of, refresh }: { of: Schemas["Webhook"]; refresh: () => void }) {
  const rotating = useSignal(false);
  const deleting = useSignal(false);
  const said = useSignal("");
  const action = useAction();
  const params = { path: { id: of.id } };
  const still = stopped(of);
  const pause = () =>
    action.run(async () => {
      await asked(api.PATCH("/webhooks/{id}", { params, body: { paused: !still } }));
      said.value = still ? "Deliveries resumed." : "";
      refresh();
    });
  const test = () =>
    action.run(async () => {
      const { delivery } = await asked(api.POST("/webhooks/{id}/test", { params }));
      said.value = `Test sent as delivery ${delivery}.`;
    });
  return (
    <div class="stack">
      <div class="row">
        <button type="button" disabled={action.busy} onClick={pause}>
          {still ? "Resume" : "Pause"}
        </button>
        <button type="button" disabled={action.busy || still} onClick={test}>
          Send a test
        </button>
        <button type="button" onClick={() => (rotating.value = true)}>
          Rotate the secret…
        </button>
        <button type="button" class="harm" onClick={() => (deleting.value = true)}>
          Delete…
        </button>
        <span class="soft" role="status">
          {still ? "Paused: the server keeps pending deliveries for up to 5 days." : said.value}
        </span>
      </div>
      {action.failure && <Trouble failure={action.failure} />}
      <Line
        text={[curl("PATCH", `/webhooks/${of.id}`, { paused: !still }), curl("POST", `/webhooks/${of.id}/test`)].join(
          "\n",
        )}
      />
      {rotating.value && <Rotate of={of} done={refresh} close={() => (rotating.value = false)} />}
      {deleting.value && <DeleteWebhook of={of} close={() => (deleting.value = false)} />}
    </div>
  );
}
