import { useSignal } from "@preact/signals";
import { api, asked, type Failure, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Badge, EntryState, Trouble } from "../parts/signs";
import { many } from "../parts/words";
import { outcome } from "../state/live";
import { ends } from "./revoke";
import { ConfirmField, isReason, Line, ReasonField } from "./sure";

type Holdings = Schemas["AdminHoldings"];
type Outcome = Schemas["RevokeOutcome"];

/** How many entries one request may name. */
const atOnce = 100;

interface RevokeAllOf {
  /** What the operator saw when the dialog was opened: these entries, and no others. */
  seen: Holdings;
  close: () => void;
  done: () => void;
}

/** Ends what a holder had when it was looked at: a preview, and then exactly that. */
export function RevokeAll({ seen, close, done }: RevokeAllOf) {
  const reason = useSignal("");
  const typed = useSignal("");
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const results = useSignal<readonly Outcome[]>([]);
  const finished = useSignal(false);
  const bodies = parts(seen, reason.value.trim());
  const ready = isReason(reason.value) && typed.value === seen.holder;
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    if (!ready || busy.value) return;
    busy.value = true;
    failure.value = undefined;
    results.value = [];
    try {
      for (const body of bodies) {
        const { entries } = await asked(api.POST("/admin/holders/revoke", { body }));
        results.value = [...results.value, ...entries];
      }
      finished.value = true;
    } catch (error) {
      failure.value = outcome(error);
    }
    busy.value = false;
    done();
  };
  return (
    <Dialog title={`Revoke everything of ${seen.holder}`} close={close}>
      <form class="stack" onSubmit={submit}>
        <p>
          {many(seen.holding, "entry", "entries")} of {seen.tenant} that {seen.holding === 1 ? "holds" : "hold"}, and{" "}
          {seen.waiting} that {seen.waiting === 1 ? "waits" : "wait"}, as they were when you opened this. What it has
          taken since stays.
        </p>
        <Entries seen={seen} results={results.value} />
        {failure.value && <Trouble failure={failure.value} />}
        {failure.value?.uncertain && <p>Some may have been revoked all the same; it is safe to try again.</p>}
        {finished.value ? (
          <div class="row end">
            <button type="button" class="main" onClick={shut}>
              Close
            </button>
          </div>
        ) : (
          <>
            {seen.holding > 0 && (
              <p class="note wait">
                <span aria-hidden="true">⚠ </span>
                <b>{seen.holder} may still be writing.</b> Whoever is next at each lock gets it at once; resources that
                check the fence keep the old holder out.
              </p>
            )}
            <ReasonField value={reason.value} set={(v) => (reason.value = v)} />
            <ConfirmField text={seen.holder} value={typed.value} set={(v) => (typed.value = v)} />
            <div class="row end">
              <button type="button" onClick={shut}>
                Cancel
              </button>
              <button type="submit" class="harm main" disabled={!ready || busy.value}>
                {busy.value ? "Revoking…" : `Revoke ${many(seen.entries.length, "entry", "entries")}`}
              </button>
            </div>
            <Line text={bodies.map((b) => curl("POST", "/admin/holders/revoke", b)).join("\n")} />
          </>
        )}
      </form>
    </Dialog>
  );
}

/** The entries that were seen, as the requests that name all of them. */
export function parts(seen: Holdings, reason: string): Schemas["RevokeHolderBody"][] {
  const entries = seen.entries.map(({ id, fence }) => ({ id, fence }));
  const bodies: Schemas["RevokeHolderBody"][] = [];
  for (let i = 0; i < entries.length; i += atOnce) {
    bodies.push({ tenant: seen.tenant, holder: seen.holder, reason, entries: entries.slice(i, i + atOnce) });
  }
  return bodies;
}

function Entries({ seen, results }: { seen: Holdings; results: readonly Outcome[] }) {
  const byId = new Map(results.map((r) => [r.id, r]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and has to by keyboard, too
    <section class="sheet scroll few" tabIndex={0} aria-label="What is revoked">
      <table>
        <caption class="unseen">Entries</caption>
        <tbody>
          {seen.entries.map((e) => (
            <tr key={e.id}>
              <td>{byId.has(e.id) ? <Result of={byId.get(e.id)} /> : <EntryState held={e.state === "held"} />}</td>
              <td class="name">{e.locks.map((l) => l.name).join(", ")}</td>
              <td class="number">fence {e.fence}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Result({ of }: { of: Outcome | undefined }) {
  if (of?.result === "revoked") {
    return (
      <Badge kind="held" sign="✓">
        revoked
      </Badge>
    );
  }
  return <span class="small">{said(of)}</span>;
}

/** What came of an entry that was not revoked. */
export function said(of: Outcome | undefined): string {
  if (of?.may_have_taken_effect) return "not known: try again";
  if (of?.result === "lock_lost") return `gone: ${ends[of.reason ?? ""] ?? "nobody knows why"}`;
  if (of?.result === "changed") return "not revoked: it is another one by now";
  if (of?.result === "not_tried") return "not tried: try again";
  return `not revoked: ${of?.result ?? ""}`;
}
