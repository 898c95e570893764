import { useSignal } from "@preact/signals";
import { api, asked, type Failure, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { count } from "../parts/words";
import { useAction } from "../state/action";
import { type Fields, fieldsOf, isWrong, limits, overridesIn, wrongIn } from "./limits";
import { isReason, Line, ReasonField } from "./sure";

interface SetQuotaOf {
  /** What was on the screen when it was asked for: that is replaced, and nothing newer. */
  seen: Schemas["Quota"];
  done: () => void;
  close: () => void;
}

/** Sets how much a tenant may use. */
export function SetQuota({ seen, done, close }: SetQuotaOf) {
  return (
    <Dialog title={`Quota of ${seen.tenant}`} close={close}>
      <Ask seen={seen} done={done} />
    </Dialog>
  );
}

function Ask({ seen, done }: { seen: Schemas["Quota"]; done: () => void }) {
  const fields = useSignal<Fields>(fieldsOf(seen.overrides));
  const reason = useSignal("");
  const action = useAction();
  const { tenant } = seen;
  const overrides = overridesIn(fields.value);
  const wrong = wrongIn(fields.value);
  const body = { ...overrides, reason: reason.value.trim(), version: seen.version };
  const ready = overrides !== undefined && isReason(reason.value);
  const submit = (e: Event & { currentTarget: HTMLFormElement }): void => {
    e.preventDefault();
    const dialog = e.currentTarget.closest("dialog");
    if (!ready) return;
    void action.run(async () => {
      await asked(api.PUT("/admin/tenants/{tenant}/quota", { params: { path: { tenant } }, body }));
      done();
      dialog?.close();
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <p class="soft">
        An empty field means the default. If the tenant uses more than a new limit, it keeps what it has and cannot add
        to it.
      </p>
      <Numbers
        seen={seen}
        fields={fields.value}
        set={(key, text) => (fields.value = { ...fields.value, [key]: text })}
      />
      {wrong !== undefined && (
        <p class="note wait" role="status">
          {wrong}
        </p>
      )}
      <ReasonField value={reason.value} set={(v) => (reason.value = v)} told="The audit keeps it." />
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
        <button type="submit" class="main" disabled={!ready || action.busy}>
          {action.busy ? "Setting…" : "Set quota"}
        </button>
      </div>
      <Line text={curl("PUT", `/admin/tenants/${tenant}/quota`, body)} />
    </form>
  );
}

interface NumbersOf {
  seen: Schemas["Quota"];
  fields: Fields;
  set: (key: keyof Fields, text: string) => void;
}

function Numbers({ seen, fields, set }: NumbersOf) {
  return (
    <div class="numbers">
      {limits.map((l) => (
        <label key={l.key}>
          <span>
            {l.name}
            <span class="soft small">
              {l.name.toLowerCase().includes(l.unit) ? "" : ` ${l.unit}`}
              {l.each && " on each replica"}
            </span>
          </span>
          {isWrong(l, fields) && <span class="wrong small soft">A whole number from 0 to {count(l.most)}</span>}
          <input
            aria-invalid={isWrong(l, fields)}
            name={l.key}
            inputMode="numeric"
            autoComplete="off"
            placeholder={count(seen.defaults[l.key])}
            value={fields[l.key] ?? ""}
            onInput={(e) => set(l.key, e.currentTarget.value)}
          />
        </label>
      ))}
    </div>
  );
}

function refusal(f: Failure): string {
  if (f.code === "changed") return "Not set: the quota has changed meanwhile. Close this dialog and check it again.";
  return f.uncertain ? `${f.message} The quota may be set. Check it before you try again.` : f.message;
}
