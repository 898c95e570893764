import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Trouble } from "../parts/signs";
import { useAction } from "../state/action";
import { go, href } from "../state/route";
import { ConfirmField, isReason, Line, ReasonField } from "./sure";

/** Ends a subscription, once a reason and its receiver are given. */
export function DeleteWebhook({ of, close }: { of: Schemas["Webhook"]; close: () => void }) {
  const reason = useSignal("");
  const typed = useSignal("");
  const action = useAction();
  const host = of.url.split(/[/?]/)[2] ?? of.url;
  const query = { reason: reason.value.trim() };
  const ready = isReason(reason.value) && typed.value === host;
  const submit = (e: Event): void => {
    e.preventDefault();
    if (!ready) return;
    void action.run(async () => {
      await asked(api.DELETE("/webhooks/{id}", { params: { path: { id: of.id }, query } }));
      go(href(["webhooks"]));
    });
  };
  return (
    <Dialog title="Delete webhook" close={close}>
      <form class="stack" onSubmit={submit}>
        <p>
          The server sends nothing more to {of.url}, pending deliveries included. A new webhook for this URL gets
          another secret.
        </p>
        <ReasonField value={reason.value} set={(v) => (reason.value = v)} told="The audit keeps it." />
        <ConfirmField text={host} value={typed.value} set={(v) => (typed.value = v)} />
        {action.failure && <Trouble failure={action.failure} />}
        {action.failure?.uncertain && <p>The webhook may be deleted. It is safe to try again.</p>}
        <div class="row end">
          <button type="button" onClick={shut}>
            Cancel
          </button>
          <button type="submit" class="harm main" disabled={!ready || action.busy}>
            {action.busy ? "Deleting…" : "Delete webhook"}
          </button>
        </div>
        <Line text={curl("DELETE", `/webhooks/${of.id}?${new URLSearchParams(query)}`)} />
      </form>
    </Dialog>
  );
}
