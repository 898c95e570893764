import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl, Shell } from "../parts/curl";
import { Replica } from "../parts/replica";
import { Badge, Failed, Head, Loading } from "../parts/signs";
import { Table } from "../parts/table";
import { Since } from "../parts/time";
import { count } from "../parts/words";
import { useLive } from "../state/live";
import { href } from "../state/route";
import { seesAll } from "../state/session";
import { isRate, type Limit, limits } from "./limits";
import { ResetQuota } from "./reset-quota";
import { SetQuota } from "./set-quota";
import { Use } from "./tenants";

/** How much one tenant may use, and uses. */
export function Tenant({ tenant }: { tenant: string }) {
  const { data, failure, refresh } = useLive(`quota ${tenant}`, 3000, (ask) =>
    asked(api.GET("/admin/tenants/{tenant}/quota", { ...ask, params: { path: { tenant } } })),
  );
  const seen = useSignal<Schemas["Quota"] | undefined>(undefined);
  const resetting = useSignal<Schemas["Quota"] | undefined>(undefined);
  return (
    <>
      <p class="small">
        <a href={href(["tenants"])}>Tenants</a>
      </p>
      <Head title={tenant}>
        <a class="button" href={href(["locks"], { tenant })}>
          Locks
        </a>
        <a class="button" href={href(["contention"], { tenant })}>
          Contention
        </a>
        {data && seesAll() && (
          <button type="button" onClick={() => (seen.value = data)}>
            Set quota…
          </button>
        )}
        {data && data.version !== 0 && seesAll() && (
          <button type="button" onClick={() => (resetting.value = data)}>
            Reset to defaults…
          </button>
        )}
      </Head>
      <Failed failure={failure} />
      {data ? <Seen of={data} /> : <Loading failure={failure} />}
      <Shell id="curl" line={curl("GET", `/admin/tenants/${encodeURIComponent(tenant)}/quota`)} />
      {resetting.value && (
        <ResetQuota seen={resetting.value} done={refresh} close={() => (resetting.value = undefined)} />
      )}
      {seen.value && <SetQuota seen={seen.value} done={refresh} close={() => (seen.value = undefined)} />}
    </>
  );
}

function Seen({ of }: { of: Schemas["Quota"] }) {
  return (
    <section class="stack" aria-labelledby="limits">
      <h2 id="limits">
        Quota and usage{" "}
        <span class="soft small">
          seen by <Replica id={of.replica} />
        </span>
      </h2>
      {of.damaged && (
        <p class="note harm" role="alert">
          <span aria-hidden="true">⚠ </span>The server cannot read the quota that was set. The defaults apply until you
          set it again.
        </p>
      )}
      {of.changed_at && (
        <p class="note">
          Set <Since at={of.changed_at} ago /> by {of.changed_by}
          {of.reason && `: ${of.reason}`}
        </p>
      )}
      <Table caption="Quota" columns={["Limit", "Used", { number: "Default" }]}>
        {limits.map((l) => (
          <tr key={l.key}>
            <td class="name">
              {l.name}
              {l.each && <span class="under">on each replica</span>}
            </td>
            <td>
              <Used of={of} limit={l.key} unit={l.unit} />
            </td>
            <td class="number">
              {count(of.defaults[l.key])}
              {of.overrides?.[l.key] !== undefined && (
                <span class="under">
                  <Badge sign="≠">set to {count(of.limits[l.key])}</Badge>
                </span>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <p class="soft small">
        For limits per second, the page shows how much of one second's quota is used at this moment. It refills
        continuously, so 0 does not mean that there are no requests.
      </p>
    </section>
  );
}

/**
 * Shows the use of a limit. The waiters of one lock have no number for the tenant. The use of a rate is of one second's
 * tokens, which refill all the time: no use there does not mean that there are no requests.
 */
function Used({ of, limit, unit }: { of: Schemas["Quota"]; limit: Limit; unit: string }) {
  const most = of.limits[limit];
  if (limit === "waiting_per_lock") return <span class="small">at most {`${count(most)} ${unit}`}</span>;
  if (isRate(limit)) return <Use name="now" is={of.used[limit]} most={most} />;
  return <Use name={unit} is={of.used[limit]} most={most} />;
}
