import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { Failed, Head, Loading } from "../parts/signs";
import { Since } from "../parts/time";
import { useLive } from "../state/live";
import { href } from "../state/route";
import { Deliveries, useDeliveries } from "./deliveries";
import { Failing } from "./failing";
import { PauseWebhook, stopped } from "./pause-webhook";
import { Sending, told } from "./sending";
import { pending } from "./webhooks-all";

interface Which {
  tenant: string;
  id: string;
}

/** A webhook of any tenant, with its recent and pending deliveries: what an operator may see and do. */
export function WebhookOf({ tenant, id }: Which) {
  return (
    <>
      <p class="small">
        <a href={href(["webhooks"], { of: "all" })}>Webhooks of all tenants</a>
      </p>
      {id === "callbacks" ? <Callbacks tenant={tenant} /> : <One tenant={tenant} id={id} />}
    </>
  );
}

function Callbacks({ tenant }: { tenant: string }) {
  const sent = useDeliveries({ id: "callbacks", tenant });
  return (
    <>
      <Head title="Callbacks">
        <span class="soft">of {tenant}</span>
      </Head>
      <p class="soft">Deliveries to the callback_url of lock requests, for all locks of the tenant.</p>
      <Deliveries of={sent} />
    </>
  );
}

function One({ tenant, id }: Which) {
  const { data, failure, refresh } = useLive(`webhook ${tenant} ${id}`, 2000, (ask) =>
    asked(api.GET("/admin/webhooks/{tenant}/{id}", { ...ask, params: { path: { tenant, id } } })),
  );
  const seen = useSignal<Schemas["AdminWebhook"] | undefined>(undefined);
  return (
    <>
      <Head title={data?.receiver ?? "Webhook"}>
        {data && <Sending of={data} />}
        {data && (
          <button type="button" onClick={() => (seen.value = data)}>
            {stopped(data) ? "Resume…" : "Pause…"}
          </button>
        )}
        <a class="button" href={href(["webhooks", tenant, "callbacks"])}>
          Callbacks
        </a>
      </Head>
      <Failed failure={failure} />
      {data ? <Seen of={data} /> : <Loading failure={failure} />}
      {seen.value && <PauseWebhook of={seen.value} done={refresh} close={() => (seen.value = undefined)} />}
    </>
  );
}

function Seen({ of }: { of: Schemas["AdminWebhook"] }) {
  const sent = useDeliveries({ id: of.id, tenant: of.tenant });
  return (
    <>
      <Failing of={of} why={sent.why} state={of} />
      <dl class="sheet pad fields">
        <dt>Tenant</dt>
        <dd>
          <a href={href(["tenants", of.tenant])}>{of.tenant}</a>
        </dd>
        <dt>Locks</dt>
        <dd>{of.locks}</dd>
        <dt>Events</dt>
        <dd>{told(of.events)}</dd>
        <dt>Pending</dt>
        <dd>{pending(of)}</dd>
        <dt>Created</dt>
        <dd>
          <Since at={of.created_at} ago /> by {of.created_by}
        </dd>
      </dl>
      <p class="soft small">Only the tenant can see the full URL and the secret.</p>
      <Deliveries of={sent} still={stopped(of)} />
    </>
  );
}
