import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Trouble } from "../parts/signs";
import { Table } from "../parts/table";
import { count } from "../parts/words";
import { useAction } from "../state/action";
import { limits } from "./limits";
import { Line } from "./sure";

interface ResetQuotaOf {
  /** What was on the screen when it was asked for. */
  seen: Schemas["Quota"];
  done: () => void;
  close: () => void;
}

/** Takes back what is set for a tenant, so that the defaults hold. */
export function ResetQuota({ seen, done, close }: ResetQuotaOf) {
  const action = useAction();
  const { tenant } = seen;
  const reset = (e: Event & { currentTarget: HTMLElement }): void => {
    const dialog = e.currentTarget.closest("dialog");
    void action.run(async () => {
      await asked(api.DELETE("/admin/tenants/{tenant}/quota", { params: { path: { tenant } } }));
      done();
      dialog?.close();
    });
  };
  return (
    <Dialog title={`Reset the quota of ${tenant}`} close={close}>
      <div class="stack">
        <p class="soft">
          All replicas apply the defaults within a second. If the tenant uses more than a default, it keeps what it has
          and cannot add to it.
        </p>
        <Changes of={seen} />
        {action.failure && <Trouble failure={action.failure} />}
        <div class="row end">
          <button type="button" onClick={shut}>
            Cancel
          </button>
          <button type="button" class="main" disabled={action.busy} onClick={reset}>
            {action.busy ? "Resetting…" : "Reset to defaults"}
          </button>
        </div>
        <Line text={curl("DELETE", `/admin/tenants/${tenant}/quota`)} />
      </div>
    </Dialog>
  );
}

function Changes({ of }: { of: Schemas["Quota"] }) {
  const changed = limits.filter((l) => of.overrides?.[l.key] !== undefined);
  if (changed.length === 0) return null;
  return (
    <Table caption="What changes" columns={["Limit", { number: "Now" }, { number: "Default" }]}>
      {changed.map((l) => (
        <tr key={l.key}>
          <td>{l.name}</td>
          <td class="number">{count(of.limits[l.key])}</td>
          <td class="number">{count(of.defaults[l.key])}</td>
        </tr>
      ))}
    </Table>
  );
}
