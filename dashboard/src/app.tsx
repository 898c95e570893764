import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { api, asked } from "./api/client";
import { Audit } from "./pages/audit";
import { Blocking } from "./pages/blocking";
import { Closures } from "./pages/closures";
import { Contention } from "./pages/contention";
import { Events } from "./pages/events";
import { Help } from "./pages/help";
import { Holders } from "./pages/holders";
import { Lock } from "./pages/lock";
import { Locks } from "./pages/locks";
import { Nowhere } from "./pages/nowhere";
import { Deadlocks } from "./pages/orders";
import { Overview } from "./pages/overview";
import { Tenant } from "./pages/tenant";
import { Tenants } from "./pages/tenants";
import { Webhook } from "./pages/webhook";
import { WebhookOf } from "./pages/webhook-of";
import { Webhooks } from "./pages/webhooks";
import { Posts } from "./parts/signs";
import { seconds, utc } from "./parts/words";
import { now, silentFor } from "./state/clock";
import { center, useEdges } from "./state/edges";
import { arrived, places } from "./state/keys";
import { connection, outcome, patience, paused, sleep, useLive } from "./state/live";
import { route } from "./state/route";
import { finishSignOut, owes, seesAll, session, signOut } from "./state/session";
import { outOfSight } from "./state/store";
import { theme, themes } from "./state/theme";

/** The pages of a user with a session. */
export function App() {
  const path = route.value.path.join("/");
  const before = useRef(path);
  useEffect(() => {
    if (before.current !== path) arrived(); // what opened the page may be gone, and the focus with it
    before.current = path;
  }, [path]);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <Side />
      <div>
        <Standing />
        {tellsNothing(route.value.path) && <Store />}
        {paused.value && connection.value === "lost" && <Back />}
        <main id="main" class="page" tabIndex={-1}>
          <Page />
        </main>
      </div>
      <Help />
    </div>
  );
}

/** Standing says why the page is stale, and since when: the server does not answer, or has lost the store. */
function Standing() {
  const lost = connection.value === "lost";
  if (!lost && outOfSight.value === undefined) return null;
  return (
    <p class="strip" role="alert">
      <span aria-hidden="true">⚠ </span>
      {lost ? "Connection lost, reconnecting…" : "Store unreachable."}
      {/* Not read out: it changes each second. */}
      {lost && <span aria-hidden="true"> No answer from the server for {seconds(silentFor.value * 1000)}.</span>} This
      page shows the state at {utc(outOfSight.value ?? now.value)}.
    </p>
  );
}

/** Whether the answers that a page asks for do not tell whether the server sees the store. */
function tellsNothing([page = "", which]: readonly string[]): boolean {
  return ["events", "orders", "webhooks", "audit"].includes(page) || (page === "tenants" && which !== undefined);
}

/** Asks for what does. */
function Store() {
  useLive("store", 3000, (ask) => asked(api.GET("/admin/overview", ask)));
  return null;
}

/**
 * Asks whether the server is there again, while the page is paused and so asks for nothing else: until it is,
 * time stands.
 */
function Back() {
  useLive("back", 3000, (ask) => asked(api.GET("/admin/overview", ask)));
  return null;
}

/** A button, not a link: what follows the # is the page's address. */
function skip(): void {
  document.getElementById("main")?.focus();
}

function Page(): ComponentChildren {
  const [page, tenant, name] = route.value.path;
  switch (page) {
    case "locks":
      return tenant && name ? <Lock key={`${tenant} ${name}`} tenant={tenant} name={name} /> : <Locks />;
    case "blocking":
      return <Blocking />;
    case "contention":
      return <Contention />;
    case "closures":
      return <Closures />;
    case "tenants":
      return tenant ? <Tenant key={tenant} tenant={tenant} /> : <Tenants />;
    case "holders":
      return <Holders />;
    case "events":
      return <Events />;
    case "orders":
      return <Deadlocks />;
    case "webhooks":
      if (tenant && name) return <WebhookOf key={`${tenant} ${name}`} tenant={tenant} id={name} />;
      return tenant ? <Webhook key={tenant} id={tenant} /> : <Webhooks />;
    case "audit":
      return <Audit />;
    case undefined:
      return <Overview />;
    default:
      return <Nowhere />;
  }
}

/** Signs out. If the server is away, retries until it answers or the user signs in again. */
async function leave(): Promise<void> {
  if (await signOut()) return;
  const never = new AbortController().signal;
  for (let failures = 1; owes() !== null; failures++) {
    await sleep(patience(failures, 1000), never);
    await finishSignOut().catch(() => {}); // still pending: the next round retries
  }
}

function Side() {
  const who = session.value;
  return (
    <header class="side">
      <a class="brand" href="#/">
        <Posts />
        Fencepost
      </a>
      <Places />
      <div class="foot">
        <Pause />
        <label class="theme small soft">
          <span class="word">Theme</span>
          <select
            value={theme.value}
            onChange={(e) => {
              theme.value = e.currentTarget.value;
            }}
          >
            {themes.map((t) => (
              <option key={t} value={t}>
                {t[0]?.toUpperCase() + t.slice(1)}
              </option>
            ))}
          </select>
        </label>
        <p class="who small">
          <b>{who?.subject}</b>
          <span class="soft">
            {who?.tenant}
            {seesAll() ? ", all tenants" : ""}
          </span>
        </p>
        <button type="button" class="quiet" onClick={() => void leave().catch(outcome)}>
          Sign out
        </button>
      </div>
    </header>
  );
}

/** The pages; where they do not all fit beside each other, the one that is open is in the middle. */
function Places() {
  const at = route.value.path[0] ?? "";
  const list = useEdges<HTMLElement>();
  useEffect(() => {
    const current = list.current?.querySelector<HTMLElement>("[aria-current]");
    if (list.current && current) center(list.current, current);
  }, [at, list]);
  return (
    <nav class="places" aria-label="Pages" ref={list}>
      {places.map((p) => (
        <a key={p.path} href={`#/${p.path}`} aria-current={p.path === at ? "page" : undefined}>
          {p.name}
        </a>
      ))}
    </nav>
  );
}

/** Whether the page follows what happens, for all to see, and the button that changes it. */
function Pause() {
  const still = paused.value;
  const away = connection.value === "lost";
  const blind = outOfSight.value;
  return (
    <button
      type="button"
      aria-pressed={still}
      onClick={() => (paused.value = !still)}
      title="Pause or resume live updates (P)"
    >
      <span class={still || away || blind !== undefined ? "dot hollow" : "dot"} aria-hidden="true" />
      {still ? "Paused" : away ? "Offline" : blind !== undefined ? `Stale since ${utc(blind).slice(11, 19)}` : "Live"}
      <span class="does" aria-hidden="true">
        {still ? "▶" : "❚❚"}
      </span>
    </button>
  );
}
