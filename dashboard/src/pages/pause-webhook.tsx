import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Trouble } from "../parts/signs";
import { useAction } from "../state/action";
import { isReason, Line, ReasonField } from "./sure";

/** Whether nothing is sent, for whatever reason. */
export function stopped(of: { paused: boolean; disabled?: string }): boolean {
  return of.paused || of.disabled !== undefined;
}

interface PauseOf {
  /** As it was when it was asked for. */
  of: Schemas["AdminWebhook"];
  done: () => void;
  close: () => void;
}

/** Has a tenant's webhook send nothing, or go on. */
export function PauseWebhook({ of, done, close }: PauseOf) {
  const on = stopped(of);
  return (
    <Dialog title={`${on ? "Resume" : "Pause"} deliveries to ${of.receiver}`} close={close}>
      <Ask of={of} on={on} done={done} />
    </Dialog>
  );
}

function Ask({ of, on, done }: { of: Schemas["AdminWebhook"]; on: boolean; done: () => void }) {
  const reason = useSignal("");
  const action = useAction();
  const { tenant, id } = of;
  const body = { paused: !on, reason: reason.value.trim() };
  const ready = isReason(reason.value);
  const submit = (e: Event & { currentTarget: HTMLFormElement }): void => {
    e.preventDefault();
    const dialog = e.currentTarget.closest("dialog");
    if (!ready) return;
    void action.run(async () => {
      await asked(api.PATCH("/admin/webhooks/{tenant}/{id}", { params: { path: { tenant, id } }, body }));
      done();
      dialog?.close();
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <p>
        {on
          ? "The server sends the pending deliveries, then new events."
          : `The server sends ${tenant} no events until you resume. It keeps pending deliveries for up to 5 days.`}
      </p>
      <ReasonField
        value={reason.value}
        set={(v) => (reason.value = v)}
        told="The audit keeps it. Operators of the tenant can read it."
      />
      {action.failure && <Trouble failure={action.failure} />}
      <div class="row end">
        <button type="button" onClick={shut}>
          Cancel
        </button>
        <button type="submit" class="main" disabled={!ready || action.busy}>
          {on ? "Resume deliveries" : "Pause deliveries"}
        </button>
      </div>
      <Line text={curl("PATCH", `/admin/webhooks/${tenant}/${id}`, body)} />
    </form>
  );
}
