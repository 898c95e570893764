import { useSignal } from "@preact/signals";
import { api, asked, type PollInit, type Schemas } from "../api/client";
import { curl } from "../parts/curl";
import { Dialog, shut } from "../parts/dialog";
import { Field } from "../parts/field";
import { Badge, Trouble } from "../parts/signs";
import { many, utc } from "../parts/words";
import { useAction } from "../state/action";
import { now } from "../state/clock";
import { useLive } from "../state/live";
import { href } from "../state/route";
import { seesAll, session } from "../state/session";
import { isPattern, spans, untilAfter } from "./closing";
import { isReason, Line, ReasonField } from "./sure";

interface CloseOf {
  /** What stands in the fields at first. */
  locks: string;
  tenant: string;
  done: () => void;
  close: () => void;
}

/** Closes locks for a time, once it is said which, for how long and why. */
export function Close({ locks, tenant, done, close }: CloseOf) {
  const made = useSignal<Schemas["Closure"] | undefined>(undefined);
  return (
    <Dialog title="Close locks" close={close}>
      {made.value ? (
        <Done of={made.value} />
      ) : (
        <Ask
          locks={locks}
          tenant={tenant || (session.value?.tenant ?? "")}
          done={(c) => {
            made.value = c;
            done();
          }}
        />
      )}
    </Dialog>
  );
}

function Ask(of: { locks: string; tenant: string; done: (c: Schemas["Closure"]) => void }) {
  const tenant = useSignal(of.tenant);
  const locks = useSignal(of.locks);
  const minutes = useSignal(60);
  const reason = useSignal("");
  const description = useSignal("");
  const action = useAction();
  const body = {
    tenant: tenant.value,
    locks: locks.value,
    until: untilAfter(now.value, minutes.value),
    reason: reason.value.trim(),
    ...(description.value.trim() === "" ? {} : { description: description.value.trim() }),
  };
  const ready = tenant.value !== "" && isPattern(locks.value) && isReason(reason.value);
  const submit = (e: Event): void => {
    e.preventDefault();
    if (ready) void action.run(async () => of.done(await asked(api.POST("/admin/closures", { body }))));
  };
  return (
    <form class="stack" onSubmit={submit}>
      {seesAll() && <Field name="tenant" label="Tenant" value={tenant.value} set={(v) => (tenant.value = v.trim())} />}
      <Field
        name="locks"
        label="Locks"
        hint={
          locks.value === "" || isPattern(locks.value)
            ? "A name, or a pattern: * stands for any characters."
            : "Not a valid name: use letters, digits and . _ : @ = + - only."
        }
        value={locks.value}
        set={(v) => (locks.value = v.trim())}
      />
      <Touched tenant={tenant.value} locks={locks.value} />
      <label class="field">
        For
        <select value={minutes.value} onChange={(e) => (minutes.value = Number(e.currentTarget.value))}>
          {spans.map((s) => (
            <option key={s.minutes} value={s.minutes}>
              {s.name}
            </option>
          ))}
        </select>
        <span class="soft small">Until {utc(body.until)}, or until an operator opens it.</span>
      </label>
      <ReasonField value={reason.value} set={(v) => (reason.value = v)} />
      <Field
        name="description"
        label="Description"
        hint="Other operators see it, tenants do not."
        required={false}
        most={200}
        value={description.value}
        set={(v) => (description.value = v)}
      />
      <Comes />
      {action.failure && <Trouble failure={action.failure} />}
      {action.failure?.uncertain && (
        <p>
          The closure may exist. Check the <a href={href(["closures"])}>list</a> before you try again.
        </p>
      )}
      <div class="row end">
        <button type="button" onClick={shut}>
          Cancel
        </button>
        <button type="submit" class="harm main" disabled={!ready || action.busy}>
          {action.busy ? "Closing…" : "Close locks"}
        </button>
      </div>
      <Line text={curl("POST", "/admin/closures", body)} />
    </form>
  );
}

/** What comes of it, for those who hold, who wait and who ask. */
function Comes() {
  return (
    <ul class="note stack small">
      <li>
        <b>Holders</b> keep the lock, and can renew, until they release it.
      </li>
      <li>
        <b>Waiters</b> acquire the lock in order.
      </li>
      <li>
        <b>New requests</b> are rejected with the end time and the reason.
      </li>
    </ul>
  );
}

/** Of how many locks it is added up how many wait there: those where most do. */
const most = 100;

/** How many locks that are in use a pattern names, and how many wait there at least. */
export interface Hit {
  locks: number;
  waiting: number;
  /** The numbers leave out some locks. */
  more: boolean;
}

async function hits(tenant: string, locks: string, ask: PollInit): Promise<Hit> {
  if (!locks.includes("*")) {
    const path = { tenant, name: locks };
    const one = await asked(api.GET("/admin/locks/{tenant}/{name}", { ...ask, params: { path } }));
    return { locks: one.holding + one.waiting > 0 ? 1 : 0, waiting: one.waiting, more: false };
  }
  const query = { tenant, search: locks, sort: "-waiters", limit: most } as const;
  const page = await asked(api.GET("/admin/locks", { ...ask, params: { query } }));
  const waiting = page.locks.reduce((sum, l) => sum + l.waiting, 0);
  return {
    locks: page.matching,
    waiting,
    more: page.next_cursor !== undefined && (page.locks.at(-1)?.waiting ?? 0) > 0,
  };
}

/** The same in words. */
export function hitsInWords({ locks, waiting, more }: Hit): string {
  if (locks === 0) return "No matching lock is in use.";
  return `${many(locks, "lock")} in use, ${more ? "at least " : ""}${many(waiting, "request")} waiting.`;
}

/** Which of the locks in use are closed by that. */
function Touched({ tenant, locks }: { tenant: string; locks: string }) {
  const usable = tenant !== "" && isPattern(locks);
  const { data } = useLive(`closing ${tenant} ${locks}`, 3000, async (ask) =>
    usable ? hits(tenant, locks, ask) : undefined,
  );
  if (!usable || !data) return null;
  return (
    <p class="note" role="status">
      {hitsInWords(data)}
      {locks === "*" && <b> This closes all locks of {tenant}.</b>}
    </p>
  );
}

function Done({ of }: { of: Schemas["Closure"] }) {
  return (
    <div class="stack">
      <p role="status">
        <Badge kind="held" sign="✓">
          Closed
        </Badge>{" "}
        {of.locks} of {of.tenant}, until {utc(of.until)}.
      </p>
      <p class="soft">Watch the remaining holders and waiters: the list is empty when all have finished.</p>
      <div class="row end">
        <a class="button" href={href(["locks"], { search: of.locks, tenant: of.tenant })}>
          Show holders
        </a>
        <button type="button" class="main" onClick={shut}>
          Close
        </button>
      </div>
    </div>
  );
}
