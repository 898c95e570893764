import { signal } from "@preact/signals";
import { answered, api, asked, Failure, type Schemas } from "../api/client";
import { heard } from "./clock";
import { bare } from "./route";

export type Session = Schemas["Session"];

/** The session: undefined until it is known, null if there is none. */
export const session = signal<Session | null | undefined>(undefined);

/** Why the session ended, shown next to the form. */
export const ended = signal("");

function begin(s: Session): void {
  heard(s.server_now);
  ended.value = "";
  session.value = s;
}

const current = (signal: AbortSignal) => asked(api.GET("/dashboard/session", { signal }));
const takeBack = (signal: AbortSignal) => asked(api.DELETE("/dashboard/session", { signal }));

/** Reads the session. A server that cannot be reached is no reason to ask for a token. */
export async function recall(): Promise<void> {
  try {
    begin(await answered(current));
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    if (e.status === 0 || e.status >= 500) throw e;
    session.value = null;
  }
}

/** Signs in, and sees that the browser has kept the session: over plain HTTP from afar it does not. */
export async function signIn(body: { bearer_token: string } | { code: string }): Promise<void> {
  await answered((signal) => asked(api.POST("/dashboard/session", { body, signal })));
  owe(null); // the session that was to be taken back is replaced
  try {
    begin(await answered(current));
  } catch (e) {
    if (e instanceof Failure && e.signedOut) {
      throw new Failure(
        "not_kept",
        "The browser did not keep the session. Open the dashboard over HTTPS, or on the machine that runs the server.",
      );
    }
    throw e;
  }
}

const owed = "fencepost-sign-out";

/** What is said until the server has confirmed that a session has ended. */
const unconfirmed =
  "This page shows no data any more, but the server has not confirmed that the session has ended. The browser keeps the session until then. Leave this page open: it retries by itself.";

const done = "You are signed out.";

/** Shows nothing any more, and says that the session may not have ended. */
export function leaveUnconfirmed(): void {
  ended.value = unconfirmed;
  session.value = null;
}

/**
 * Signs out. What was shown is gone at once, whatever comes of it. A server that does not answer cannot take the
 * session back, and no script can: then the sign-out stays pending for `finishSignOut`. Reports whether it is done.
 */
export async function signOut(): Promise<boolean> {
  const end = session.value?.expires_at ?? null;
  owe(end);
  leaveUnconfirmed();
  let said = done;
  try {
    await answered(takeBack);
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    if (e.passing) return false;
    if (!e.signedOut) said = `The session has not ended, and the browser keeps it: ${e.message}`;
  }
  if (owes() !== end) return true; // the operator has signed in meanwhile
  owe(null);
  ended.value = said;
  return true;
}

/** Takes back the session that a sign-out without a server has left, if that is still the browser's. */
export async function finishSignOut(): Promise<void> {
  const left = owes();
  if (left === null) return;
  try {
    const { expires_at } = await answered(current);
    if (expires_at === left && owes() === left) await answered(takeBack);
  } catch (e) {
    if (!(e instanceof Failure && e.signedOut)) throw e;
  }
  if (owes() !== left) return; // the operator has signed in meanwhile
  owe(null);
  ended.value = done;
}

let owing: string | null = null;

/** The end of the session whose sign-out is pending, which identifies it; null if none is. */
export function owes(): string | null {
  try {
    return localStorage.getItem(owed);
  } catch {
    return owing;
  }
}

function owe(end: string | null): void {
  owing = end;
  try {
    if (end === null) localStorage.removeItem(owed);
    else localStorage.setItem(owed, end);
  } catch {
    // Storage is off: it stays pending while the page is open.
  }
}

/** Notes that a request was refused because no operator is signed in. */
export function lost(f: Failure): void {
  if (!f.signedOut || !session.value) return;
  ended.value = "Your session has ended. Sign in again.";
  session.value = null;
}

/** Whether the session is an operator's, of all tenants or its own. */
export function operates(): boolean {
  return seesAll() || (session.value?.scopes.includes("tenant-admin") ?? false);
}

/** Whether all tenants can be seen. */
export function seesAll(): boolean {
  return session.value?.scopes.includes("admin") ?? false;
}

/** The identity provider by which one may sign in, and where that begins; null without one. */
export async function provider(): Promise<{ host: string; href: string } | null> {
  const { provider: host } = await asked(api.GET("/dashboard/sign-in"));
  return host ? { host, href: "sign-in/oidc" } : null;
}

const turnedAway: Record<string, string> = {
  denied: "The identity provider did not sign you in.",
  unknown_claims:
    "The identity provider knows you, but no entry in the server's principals file gives you rights. Ask the operator of this server.",
  bad_subject: "The identity provider has no name for you that the audit can record. Ask the operator of this server.",
  bad_sign_in: "The sign-in took longer than 10 minutes, or began in another browser. Try again.",
  no_provider: "The identity provider does not answer. Try again, or sign in with a bearer token.",
  too_large: "Your name at the identity provider is too long for a session. Ask the operator of this server.",
};

/** Takes the reason of a refused sign-in by the identity provider out of the address. */
export function takeRefusal(): string {
  const reason = /^#sign-in=([a-z_]+)$/.exec(location.hash)?.[1];
  if (reason === undefined) return "";
  bare();
  return turnedAway[reason] ?? "The sign-in failed. Try again.";
}

/**
 * Takes the one-time code out of the address, where it would stay in the history, and returns
 * it.
 */
export function takeCode(): string | null {
  const code = /^#code=([A-Za-z0-9]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) bare();
  return code;
}
