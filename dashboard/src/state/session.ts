import { signal } from "@preact/signals";
import { answered, api, asked, Failure, type Schemas } from "../api/client";
import { heard } from "./clock";
import { bare } from "./route";

export type Session = Schemas["Session"];

/** Who is signed in: undefined until it is known, or null. */
export const session = signal<Session | null | undefined>(undefined);

/** Why nobody is signed in any more, to be told beside the form. */
export const ended = signal("");

function begin(s: Session): void {
  heard(s.server_now);
  ended.value = "";
  session.value = s;
}

const current = (signal: AbortSignal) => asked(api.GET("/dashboard/session", { signal }));
const takeBack = (signal: AbortSignal) => asked(api.DELETE("/dashboard/session", { signal }));

/** Asks who is signed in. A server that cannot be reached is no reason to ask for a token. */
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
        "The browser did not keep the session: open the dashboard over HTTPS, or on the machine itself.",
      );
    }
    throw e;
  }
}

const owed = "fencepost-sign-out";

/** What is said until the server has confirmed that a session has ended. */
const unconfirmed =
  "Nothing is shown here any more, but the server has not confirmed that the session has ended: this browser keeps the session until it does. Leave this page open: it goes on asking.";

const done = "You are signed out.";

/** Shows nothing any more, and says that the session may not have ended. */
export function leaveUnconfirmed(): void {
  ended.value = unconfirmed;
  session.value = null;
}

/**
 * Signs out. What was shown is gone at once, whatever comes of it. A server that does not answer cannot take the
 * session back, and no script can: then what is owed is kept for `finishSignOut`. Reports whether it is done.
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
    if (!e.signedOut) said = `The session has not ended, and this browser keeps it: ${e.message}`;
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

/** The end of the session that is to be taken back, which tells it from others; null if none is. */
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
    // Storage is off: it is owed for as long as the page is open.
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
  unknown_claims: "The identity provider knows you, but nobody has given you rights here. Ask who runs this server.",
  bad_subject: "The identity provider has no name for you that can be put on record here. Ask who runs this server.",
  bad_sign_in: "You took longer than ten minutes, or began in another browser. Try again.",
  no_provider: "The identity provider does not answer. Try again, or sign in with a bearer token.",
  too_large: "The name that the identity provider has for you is too long for a session.",
};

/** Takes out of the address why somebody who came back from the identity provider is not signed in. */
export function takeRefusal(): string {
  const reason = /^#sign-in=([a-z_]+)$/.exec(location.hash)?.[1];
  if (reason === undefined) return "";
  bare();
  return turnedAway[reason] ?? "You could not be signed in.";
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
