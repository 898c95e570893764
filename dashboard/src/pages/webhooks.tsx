import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { Calm, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { useLive } from "../state/live";
import { href, route } from "../state/route";
import { operates, seesAll, session } from "../state/session";
import { NewWebhook } from "./new-webhook";
import { Sending, told } from "./sending";
import { AllWebhooks } from "./webhooks-all";

/** Whether the session may see and change webhooks: of its own tenant, whatever else it may see. */
export function mayUseWebhooks(): boolean {
  return session.value?.scopes.includes("webhooks:write") ?? false;
}

/** The page of a user without the scope. */
export function NoScope() {
  return (
    <div class="sheet">
      <Calm title="Missing scope">To see webhooks, sign in with a token that also has the scope webhooks:write.</Calm>
    </div>
  );
}

/**
 * The subscriptions of the session's tenant, with all that the tenant may
 * do, or those of all tenants, as operators see them.
 */
export function Webhooks() {
  const all = operates() && (!mayUseWebhooks() || route.value.query.get("of") === "all");
  const making = useSignal(false);
  return (
    <>
      <Head title="Webhooks">
        <span class="soft">of {all && seesAll() ? "all tenants" : session.value?.tenant}</span>
        <Others all={all} />
        {mayUseWebhooks() && !all && (
          <button type="button" class="main" onClick={() => (making.value = true)}>
            New webhook…
          </button>
        )}
      </Head>
      {all ? <AllWebhooks /> : mayUseWebhooks() ? <Listed /> : <NoScope />}
      {making.value && <NewWebhook close={() => (making.value = false)} />}
    </>
  );
}

function Others({ all }: { all: boolean }) {
  if (!mayUseWebhooks()) return null;
  return (
    <>
      {all ? (
        <a class="button" href={href(["webhooks"])}>
          Only {session.value?.tenant}
        </a>
      ) : (
        <a class="button" href={href(["webhooks", "callbacks"])}>
          Callbacks
        </a>
      )}
      {seesAll() && !all && (
        <a class="button" href={href(["webhooks"], { of: "all" })}>
          All tenants
        </a>
      )}
    </>
  );
}

function Listed() {
  const { data, failure } = useLive("webhooks", 5000, (ask) =>
    asked(api.GET("/webhooks", { ...ask, params: { query: { limit: 1000 } } })),
  );
  return (
    <>
      <Failed failure={failure} />
      {data ? <Rows all={data.webhooks} /> : <Loading failure={failure} />}
      <Shell id="curl" line={curl("GET", "/webhooks")} />
    </>
  );
}

function Rows({ all }: { all: Schemas["Webhook"][] }) {
  if (all.length === 0) {
    return (
      <div class="sheet">
        <Calm title="No webhooks">A webhook sends lock events to your URL. Create one with the button above.</Calm>
      </div>
    );
  }
  return (
    <Table caption="Webhooks, oldest first" columns={["Receiver", "State", "Locks", "Events", "Created"]}>
      {all.map((w) => (
        <tr key={w.id}>
          <td class="name">
            <a data-row href={href(["webhooks", w.id])}>
              {w.url}
            </a>
            {w.description && <span class="under">{w.description}</span>}
          </td>
          <td>
            <Sending of={w} />
          </td>
          <td>{w.locks}</td>
          <td class="text">{told(w.events)}</td>
          <td class="whole">
            <Since at={w.created_at} ago />
            <span class="under">by {w.created_by}</span>
          </td>
        </tr>
      ))}
    </Table>
  );
}
