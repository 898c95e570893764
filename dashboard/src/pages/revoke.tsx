import { useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedEvent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { api, asked, type Failure, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Badge } from "../parts/signs";
import { many } from "../parts/words";
import { outcome } from "../state/live";
import { href } from "../state/route";
import { nextAfter, nextInWords } from "./next";
import { ConfirmField, isReason, Line, ReasonField } from "./sure";

type View = Schemas["AdminLockView"];

/** The entry that an operator saw when the dialog was opened; what changes later is not it. */
export interface Target {
  id: string;
  holder: string;
  fence: number;
  held: boolean;
  set?: number | undefined;
}

/** Ends exactly the entry that is named, once a reason and the lock's name are given. */
export function Revoke({ target, view, close, done, closeLock }: RevokeOf) {
  const result = useSignal<{ of: Schemas["Revoked"]; next: boolean } | undefined>(undefined);
  return (
    <Dialog title={`Revoke ${target.holder}`} close={close}>
      {result.value ? (
        <Done {...result.value} />
      ) : (
        <Ask
          target={target}
          view={view}
          closeLock={closeLock}
          done={(of, next) => {
            result.value = { of, next };
            done();
          }}
        />
      )}
    </Dialog>
  );
}

export interface RevokeOf {
  target: Target;
  view: View;
  close: () => void;
  done: () => void;
  /** Opens the dialog that closes the lock: for when the entry is gone before it could be revoked. */
  closeLock: () => void;
}

interface AskOf {
  target: Target;
  view: View;
  closeLock: () => void;
  /** Takes the outcome, and whether a waiter was granted. */
  done: (r: Schemas["Revoked"], next: boolean) => void;
}

function Ask({ target, view, done, closeLock }: AskOf) {
  const reason = useSignal("");
  const typed = useSignal("");
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const body = { fence: target.fence, reason: reason.value.trim() };
  const ready = isReason(reason.value) && typed.value === view.name;
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    if (!ready || busy.value) return;
    busy.value = true;
    failure.value = undefined;
    try {
      const next = !view.closed && nextAfter(view, target.id).granted.length > 0;
      done(await send(view, target, body), next);
    } catch (error) {
      failure.value = outcome(error);
    }
    busy.value = false;
  };
  // While the request runs, or if its outcome is unknown, the user can only send it (again).
  if (isOver(view, target) && !busy.value && !failure.value?.uncertain) {
    return <Over target={target} view={view} failure={failure.value} closeLock={closeLock} />;
  }
  return (
    <form class="stack" onSubmit={submit}>
      <What target={target} view={view} busy={busy.value} />
      {failure.value && <Refused failure={failure.value} />}
      <ReasonField value={reason.value} set={(v) => (reason.value = v)} />
      <ConfirmField text={view.name} value={typed.value} set={(v) => (typed.value = v)} />
      <div class="row end">
        <button type="button" onClick={shut}>
          Cancel
        </button>
        <button type="submit" class="harm main" disabled={!ready || busy.value}>
          {busy.value ? "Revoking…" : "Revoke"}
        </button>
      </div>
      <Line text={curl("POST", pathOf(view, target), body)} />
    </form>
  );
}

function pathOf(view: View, target: Target): string {
  return target.set
    ? `/admin/locksets/${view.tenant}/${target.id}/revoke`
    : `/admin/locks/${view.tenant}/${view.name}/entries/${target.id}/revoke`;
}

async function send(view: View, target: Target, body: Schemas["RevokeBody"]): Promise<Schemas["Revoked"]> {
  const { tenant, name } = view;
  const { id } = target;
  return target.set
    ? asked(api.POST("/admin/locksets/{tenant}/{id}/revoke", { params: { path: { tenant, id } }, body }))
    : asked(
        api.POST("/admin/locks/{tenant}/{name}/entries/{id}/revoke", { params: { path: { tenant, name, id } }, body }),
      );
}

/** What is said in place of the form when what the operator saw is not there any more. */
function Over({ target, view, failure, closeLock }: Omit<AskOf, "done"> & { failure: Failure | undefined }) {
  // What had the focus has gone with the form.
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus(), []);
  const instead = (e: TargetedEvent<HTMLElement>): void => {
    shut(e);
    closeLock();
  };
  const offer = target.held && !view.closed;
  return (
    <div class="stack">
      <Entry target={target} view={view} />
      {failure && <Refused failure={failure} />}
      <Meanwhile target={target} view={view} />
      {offer && <p>If holders change too fast to revoke one, close the lock: its queue then empties in order.</p>}
      <div class="row end">
        {offer && (
          <button type="button" onClick={instead}>
            Close lock…
          </button>
        )}
        <button type="button" class="main" ref={close} onClick={shut}>
          Close
        </button>
      </div>
    </div>
  );
}

/** The entry, as the operator saw it. */
function Entry({ target, view }: { target: Target; view: View }) {
  return (
    <dl class="fields">
      <dt>Lock</dt>
      <dd>
        {view.name} <span class="soft">of {view.tenant}</span>
      </dd>
      <dt>{target.held ? "Holder" : "Waiter"}</dt>
      <dd>{target.holder}</dd>
      <dt>{target.held ? "Fence" : "Fence when granted"}</dt>
      <dd>{target.fence}</dd>
    </dl>
  );
}

/**
 * What is revoked, and what comes of it: of what has gone already, nothing does. While it is being revoked, that it
 * has left is no news.
 */
function What({ target, view, busy }: { target: Target; view: View; busy: boolean }) {
  return (
    <>
      <Entry target={target} view={view} />
      {!isOver(view, target) && <Outcome target={target} view={view} />}
      {!busy && <Meanwhile target={target} view={view} />}
    </>
  );
}

function Outcome({ target, view }: { target: Target; view: View }) {
  return (
    <>
      {target.set && (
        <p>
          The entry is a set of {many(target.set, "lock")}. It loses <b>all of them</b> at once.
        </p>
      )}
      <p>{nextInWords(view, target.id)}</p>
      {target.held ? (
        <p class="note wait">
          <span aria-hidden="true">⚠ </span>
          <b>{target.holder} may still be writing.</b> Its next renewal fails with 410. Only a resource that checks the
          fence rejects its late writes: it has seen a greater fence than {target.fence}.
        </p>
      ) : (
        <p class="note">The entry leaves the queue, and its request gets the reason.</p>
      )}
    </>
  );
}

/** What the lock shows by now, if that is not what the operator saw. */
function Meanwhile({ target, view }: { target: Target; view: View }) {
  const now = statusOf(view, target);
  if (now === "same") return null;
  return (
    <p class="note wait" role="status">
      {now === "gone" && "The entry has left this lock meanwhile. There is nothing to revoke."}
      {now === "holds" && "The entry has acquired the lock meanwhile."}
      {now === "other" && "The entry has another fence now. Close this dialog and check the lock again."}
    </p>
  );
}

/** Whether what was seen cannot be revoked any more. */
function isOver(view: View, target: Target): boolean {
  return ["gone", "other"].includes(statusOf(view, target));
}

/** How an entry that was seen stands now. */
export function statusOf(view: View, target: Target): "same" | "holds" | "other" | "gone" {
  const holder = view.holders.find((h) => h.id === target.id);
  const waiter = view.waiters.find((w) => w.id === target.id);
  const fence = holder?.fence ?? waiter?.number;
  if (fence === undefined) return isMissing(view, target) ? "gone" : "same";
  if (fence !== target.fence) return "other";
  return holder && !target.held ? "holds" : "same";
}

/**
 * Whether what is not listed is not there: the first that wait are listed, in the order of their numbers, and
 * so many that hold. An entry behind the listed waiters may be there.
 */
function isMissing(view: View, target: Target): boolean {
  if (view.holders.length < view.holding) return false;
  const last = view.waiters.at(-1);
  return target.held || view.waiters.length === view.waiting || (last !== undefined && target.fence <= last.number);
}

/** Why it was not done, with what to do about it. */
function Refused({ failure }: { failure: Failure }) {
  return (
    <p class="note harm" role="alert">
      <span aria-hidden="true">⚠ </span>
      {refusal(failure)}
      {failure.requestId !== "" && <span class="small"> (request {failure.requestId})</span>}
    </p>
  );
}

export const ends: Record<string, string> = {
  released: "its client released it",
  expired: "its lease expired",
  revoked: "an operator revoked it",
  wait_timeout: "its wait timed out",
  deadlock: "it was rejected: it would have closed a deadlock",
  superseded: "a later request with only_newest took its place",
  mode_mismatch: "it was rejected: the lock is in use in another mode",
};

/** What a refusal means for who wanted to revoke. */
export function refusal(f: Failure): ComponentChildren {
  if (f.code === "changed")
    return "Not revoked: the entry has another fence than this dialog shows. Close it and check the lock again.";
  if (f.status === 410) return `The entry is already gone: ${ends[f.reason] ?? "reason unknown"}.`;
  if (f.uncertain) return `${f.message} The entry may be revoked. It is safe to try again.`;
  return `Not revoked: ${f.message}`;
}

function Done({ of, next }: { of: Schemas["Revoked"]; next: boolean }) {
  return (
    <div class="stack">
      <p role="status">
        <Badge kind="held" sign="✓">
          Revoked
        </Badge>{" "}
        {of.holder} {of.held ? "held" : "waited for"} {of.locks.join(", ")} with fence {of.fence}.
      </p>
      <p class="soft">The audit has a record{of.held && next ? ", and the next waiter holds the lock" : ""}.</p>
      <div class="row end">
        <a class="button" href={href(["audit"], { tenant: of.tenant })} onClick={shut}>
          Audit
        </a>
        <button type="button" class="main" onClick={shut}>
          Close
        </button>
      </div>
    </div>
  );
}
