import { api, asked, type Failure, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Until } from "../parts/time";
import { useAction } from "../state/action";
import { Line } from "./sure";

/** Ends a closure before its time. */
export function Open({ closure, done, close }: { closure: Schemas["Closure"]; done: () => void; close: () => void }) {
  const action = useAction();
  const { id, locks, tenant, until, reason, description, by } = closure;
  const open = (e: { currentTarget: HTMLElement }): Promise<void> => {
    const dialog = e.currentTarget.closest("dialog");
    return action.run(async () => {
      await asked(api.DELETE("/admin/closures/{id}", { params: { path: { id } } }));
      done();
      dialog?.close();
    });
  };
  return (
    <Dialog title={`Open ${locks}`} close={close}>
      <dl class="fields">
        <dt>Locks</dt>
        <dd>
          {locks} <span class="soft">of {tenant}</span>
        </dd>
        <dt>Closed by</dt>
        <dd>{by}</dd>
        <dt>Reason</dt>
        <dd>{reason}</dd>
        {description && (
          <>
            <dt>Description</dt>
            <dd>{description}</dd>
          </>
        )}
        <dt>Opens otherwise</dt>
        <dd>
          <Until at={until} end />
        </dd>
      </dl>
      <p>The locks accept new requests within a second, unless another closure also names them.</p>
      {action.failure && (
        <p class="note harm" role="alert">
          <span aria-hidden="true">⚠ </span>
          {refusal(action.failure)}
        </p>
      )}
      <div class="row end">
        <button type="button" onClick={shut}>
          Cancel
        </button>
        <button type="button" class="main" disabled={action.busy} onClick={open}>
          Open now
        </button>
      </div>
      <Line text={curl("DELETE", `/admin/closures/${id}`)} />
    </Dialog>
  );
}

function refusal(f: Failure): string {
  if (f.status === 404) return "The closure has already ended.";
  return f.uncertain ? `${f.message} The closure may have ended. It is safe to try again.` : f.message;
}
