import { useSignal } from "@preact/signals";
import { api, asked, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Field } from "../parts/field";
import { Trouble } from "../parts/signs";
import { useAction } from "../state/action";
import { go, href } from "../state/route";
import { signs } from "./events";
import { Secret } from "./secret";
import { Line } from "./sure";

type Body = Schemas["WebhookBody"];
type Types = NonNullable<Body["events"]>;

/** Makes a subscription, and shows its secret once. Its page follows. */
export function NewWebhook({ close }: { close: () => void }) {
  const made = useSignal<Schemas["NewWebhook"] | undefined>(undefined);
  const closed = (): void => {
    close();
    if (made.value) go(href(["webhooks", made.value.id]));
  };
  return (
    <Dialog title={made.value ? "Webhook created" : "New webhook"} close={closed}>
      {made.value ? <Secret text={made.value.secret} /> : <Ask done={(w) => (made.value = w)} />}
    </Dialog>
  );
}

function Ask({ done }: { done: (w: Schemas["NewWebhook"]) => void }) {
  const fields = useSignal<Body & { events: Types }>({ url: "", locks: "*", description: "", events: ["*"] });
  const action = useAction();
  const { failure } = action;
  const body = { ...fields.value };
  if (!body.description) delete body.description;
  const ready = body.url !== "" && body.locks !== "" && body.events.length > 0;
  const submit = (e: Event): void => {
    e.preventDefault();
    if (ready) void action.run(async () => done(await asked(api.POST("/webhooks", { body }))));
  };
  const text = (name: "url" | "locks" | "description") => ({
    name,
    value: fields.value[name] ?? "",
    set: (v: string) => (fields.value = { ...fields.value, [name]: v }),
    failure,
  });
  return (
    <form class="stack" onSubmit={submit}>
      <Field label="URL" hint="The receiver, such as https://example.org/fencepost." {...text("url")} />
      <Field label="Locks" hint="A name, or a pattern: * stands for any characters." {...text("locks")} />
      <Events chosen={body.events} set={(events) => (fields.value = { ...fields.value, events })} />
      <Field label="Description" required={false} most={200} {...text("description")} />
      {failure && !["url", "locks", "description"].includes(failure.field) && <Trouble failure={failure} />}
      {failure?.uncertain && (
        <p>The webhook may exist. If the list has it, rotate its secret to see one, or delete it.</p>
      )}
      <div class="row end">
        <button type="button" onClick={shut}>
          Cancel
        </button>
        <button type="submit" class="main" disabled={!ready || action.busy}>
          {action.busy ? "Creating…" : "Create webhook"}
        </button>
      </div>
      <Line text={curl("POST", "/webhooks", body)} />
    </form>
  );
}

/** Which types of events it receives. The server sends `events.missed` in any case. */
function Events({ chosen, set }: { chosen: Types; set: (types: Types) => void }) {
  const all = chosen.includes("*");
  const types = Object.entries(signs).filter(([type]) => type !== "events.missed") as [
    Types[number],
    { name: string },
  ][];
  return (
    <fieldset>
      <legend>Events</legend>
      <label>
        <input type="checkbox" checked={all} onChange={() => set(all ? [] : ["*"])} />
        All, also future types
      </label>
      {!all &&
        types.map(([type, { name }]) => (
          <label key={type}>
            <input
              type="checkbox"
              checked={chosen.includes(type)}
              onChange={(e) =>
                set(e.currentTarget.checked ? [...chosen, type] : chosen.filter((other) => other !== type))
              }
            />
            {name}
          </label>
        ))}
    </fieldset>
  );
}
