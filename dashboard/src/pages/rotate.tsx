import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Trouble } from "../parts/signs";
import { useAction } from "../state/action";
import { Secret } from "./secret";
import { Line } from "./sure";

/** Makes a new secret, and shows it once: it is kept nowhere else on the page. */
export function Rotate({ of, done, close }: { of: Schemas["Webhook"]; done: () => void; close: () => void }) {
  const secret = useSignal("");
  const action = useAction();
  const rotate = () =>
    action.run(async () => {
      const fresh = await asked(api.POST("/webhooks/{id}/rotate", { params: { path: { id: of.id } } }));
      secret.value = fresh.secret;
      done();
    });
  return (
    <Dialog title="Rotate the secret" close={close}>
      {secret.value === "" ? (
        <div class="stack">
          <p>
            The server signs deliveries to {of.url} with a new secret. For 24 hours it also signs with the old one: give
            the new secret to the receiver within that time.
          </p>
          {action.failure && <Trouble failure={action.failure} />}
          <div class="row end">
            <button type="button" onClick={shut}>
              Cancel
            </button>
            <button type="button" class="main" disabled={action.busy} onClick={rotate}>
              Rotate
            </button>
          </div>
          <Line text={curl("POST", `/webhooks/${of.id}/rotate`)} />
        </div>
      ) : (
        <Secret text={secret.value} />
      )}
    </Dialog>
  );
}
