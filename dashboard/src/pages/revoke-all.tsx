import { useSignal } from "@preact/signals";
import { api, asked, Failure, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Badge, EntryState, Trouble } from "../parts/signs";
import { count, many } from "../parts/words";
import { useAction } from "../state/action";
import { outcome, sleep } from "../state/live";
import { ends } from "./revoke";
import { ConfirmField, isReason, Line, ReasonField } from "./sure";

type Holdings = Schemas["AdminHoldings"];
type Outcome = Schemas["RevokeOutcome"];

/** How many entries one request may name. */
const atOnce = 100;

interface RevokeAllOf {
  /** What the operator saw when the dialog was opened: these entries, and no others. */
  seen: Holdings;
  /** Looks again at what the holder has. */
  look: () => Promise<Holdings>;
  close: () => void;
  done: () => void;
}

/**
 * Revokes what a holder had when the dialog opened: a preview, and then exactly that. Of a holder with more
 * entries than the list has, it revokes the first ones, and then the next.
 */
export function RevokeAll({ seen: first, look, close, done }: RevokeAllOf) {
  const part = useSignal(first);
  const seen = part.value;
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
  const held = seen.entries.filter((e) => e.state === "held").length;
  const waiting = seen.entries.length - held;
  return (
    <Dialog title={titleOf(seen)} close={close}>
      <form class="stack" onSubmit={submit}>
        {seen.truncated && !finished.value && (
          <p class="note wait">
            <span aria-hidden="true">⚠ </span>
            <b>These are not all.</b> {seen.holder} has more than these {count(seen.entries.length)} entries. After you
            revoke them, the next ones follow.
          </p>
        )}
        <p>
          {count(held)} held and {count(waiting)} waiting {held + waiting === 1 ? "entry" : "entries"} of {seen.tenant},
          as the page showed them when you opened this dialog. Newer entries stay.
        </p>
        <Entries seen={seen} results={results.value} />
        {failure.value && <Trouble failure={failure.value} />}
        {failure.value?.uncertain && <p>Some entries may be revoked. It is safe to try again.</p>}
        {finished.value ? (
          <Rest
            of={seen}
            results={results.value}
            look={look}
            next={(rest) => {
              part.value = rest;
              results.value = [];
              finished.value = false;
            }}
          />
        ) : (
          <>
            {held > 0 && (
              <p class="note wait">
                <span aria-hidden="true">⚠ </span>
                <b>{seen.holder} may still be writing.</b> The next waiter acquires each lock at once. Resources that
                check the fence reject the old holder.
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

function titleOf(seen: Holdings): string {
  if (!seen.truncated) return `Revoke all entries of ${seen.holder}`;
  return `Revoke the first ${count(seen.entries.length)} entries of ${seen.holder}`;
}

interface RestOf {
  of: Holdings;
  results: readonly Outcome[];
  look: () => Promise<Holdings>;
  next: (rest: Holdings) => void;
}

const never = new AbortController().signal;

/** After a part: says whether there is more, and goes on with that. */
function Rest({ of, results, look, next }: RestOf) {
  const action = useAction();
  const nothing = useSignal(false);
  const more = !nothing.value && (of.truncated || unsettled(results));
  const go = () =>
    action.run(async () => {
      for (let tries = 0; tries < 10; tries++) {
        const rest = without(await look(), results);
        if (rest.entries.length > 0) return next(rest);
        nothing.value = !rest.truncated;
        if (nothing.value) return;
        await sleep(500, never);
      }
      throw new Failure("not_seen", "The replica does not show the remaining entries yet. Try again.");
    });
  return (
    <>
      {more && (
        <p class="note wait" role="status">
          <span aria-hidden="true">⚠ </span>
          <b>{of.holder} had more entries.</b> The others are not revoked yet.
        </p>
      )}
      {nothing.value && <p role="status">{of.holder} has no entries left.</p>}
      {action.failure && <Trouble failure={action.failure} />}
      <div class="row end">
        <button type="button" class={more ? "" : "main"} onClick={shut}>
          Close
        </button>
        {more && (
          <button type="button" class="main" disabled={action.busy} onClick={go}>
            {action.busy ? "Loading…" : "Show the others…"}
          </button>
        )}
      </div>
    </>
  );
}

/** Whether an entry is not there any more, or is another one. */
function settled({ result }: Outcome): boolean {
  return ["revoked", "lock_lost", "changed"].includes(result);
}

function unsettled(results: readonly Outcome[]): boolean {
  return !results.every(settled);
}

/** What a holder has, without what was revoked just now: the replica may not have seen that yet. */
export function without(now: Holdings, results: readonly Outcome[]): Holdings {
  const named = (e: { id: string; fence: number }) => `${e.id} ${e.fence}`;
  const gone = new Set(results.filter(settled).map(named));
  return { ...now, entries: now.entries.filter((e) => !gone.has(named(e))) };
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
    <section class="sheet scroll few" tabIndex={0} aria-label="Entries to revoke">
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
  if (of?.may_have_taken_effect) return "outcome unknown: try again";
  if (of?.result === "lock_lost") return `gone: ${ends[of.reason ?? ""] ?? "reason unknown"}`;
  if (of?.result === "changed") return "not revoked: the entry has changed";
  if (of?.result === "not_tried") return "not tried: try again";
  return `not revoked: ${of?.result ?? ""}`;
}
