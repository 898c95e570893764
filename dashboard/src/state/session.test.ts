import { beforeEach, expect, it, vi } from "vitest";
import { Failure, patient } from "../api/client";
import { route } from "./route";
import {
  ended,
  finishSignOut,
  lost,
  owes,
  provider,
  recall,
  type Session,
  session,
  signIn,
  signOut,
  takeCode,
  takeRefusal,
} from "./session";

const someone: Session = {
  tenant: "acme",
  subject: "ann",
  scopes: ["admin"],
  expires_at: "2026-01-02T20:00:00.000Z",
  server_now: "2026-01-02T15:00:00.000Z",
};

/** Answers requests in turn. */
function answering(...answers: [number, unknown][]): Request[] {
  const sent: Request[] = [];
  vi.stubGlobal("fetch", async (r: Request) => {
    sent.push(r.clone() as Request);
    const [status, body] = answers.shift() ?? [500, {}];
    return new Response(body === null ? null : JSON.stringify(body), {
      status,
      headers: { "Content-Type": "application/json" },
    });
  });
  return sent;
}

beforeEach(() => {
  session.value = undefined;
  ended.value = "";
  localStorage.clear();
});

const methods = (sent: Request[]) => sent.map((r) => r.method);

it("sends the token in the body, and never in the address", async () => {
  const sent = answering([200, someone], [200, someone]);
  await signIn({ bearer_token: "secret" });
  expect(session.value?.subject).toBe("ann");
  expect(sent.map((r) => `${r.method} ${new URL(r.url).pathname}`)).toEqual([
    "POST /dashboard/session",
    "GET /dashboard/session",
  ]);
  expect(sent.every((r) => !r.url.includes("secret"))).toBe(true);
  expect(await sent[0]?.json()).toEqual({ bearer_token: "secret" });
});

it("says so when the browser does not keep the session", async () => {
  answering([200, someone], [401, { code: "unauthenticated", detail: "nobody is signed in" }]);
  await expect(signIn({ bearer_token: "x" })).rejects.toThrow("HTTPS");
  expect(session.value).toBeUndefined();
});

it("asks for a token when nobody is signed in, but not while the server is away", async () => {
  answering([401, { detail: "nobody is signed in" }], [503, {}]);
  await recall();
  expect(session.value).toBeNull();
  session.value = undefined;
  await expect(recall()).rejects.toBeInstanceOf(Failure);
  expect(session.value).toBeUndefined();
});

it("takes the code out of the address, and is then at the first page", () => {
  location.hash = "#code=ABC234";
  dispatchEvent(new Event("hashchange"));
  expect(route.value.path).toEqual(["code=ABC234"]);
  expect(takeCode()).toBe("ABC234");
  expect(location.hash).toBe("");
  expect(route.value.path).toEqual([]);
  history.replaceState(null, "", "#/locks");
  expect(takeCode()).toBeNull();
});

it("asks anew when a session has ended, and tells why", () => {
  session.value = someone;
  lost(new Failure("store_unavailable", "away", 503));
  expect(session.value).not.toBeNull();
  lost(new Failure("unauthenticated", "ended", 401));
  expect(session.value).toBeNull();
  expect(ended.value).toContain("ended");
});

it("tells whose identity provider one may sign in by", async () => {
  answering([200, { provider: "login.example" }], [200, {}]);
  expect(await provider()).toEqual({ host: "login.example", href: "sign-in/oidc" });
  expect(await provider()).toBeNull();
});

it("takes out of the address why nobody was signed in, and shows nothing of its own", () => {
  history.replaceState(null, "", "#sign-in=denied");
  expect(takeRefusal()).toContain("did not sign you in");
  expect(location.hash).toBe("");
  history.replaceState(null, "", "#sign-in=something_else");
  expect(takeRefusal()).toBe("The sign-in failed. Try again.");
  history.replaceState(null, "", "#sign-in=<b>");
  expect(takeRefusal()).toBe("");
});

it("shows nothing any more to who signs out while the server is away, and takes the session back later", async () => {
  session.value = someone;
  const sent = answering([503, {}], [502, {}], [200, someone], [204, null]);
  expect(await signOut()).toBe(false);
  expect(session.value).toBeNull();
  expect(ended.value).toContain("keeps the session");
  await expect(finishSignOut()).rejects.toBeInstanceOf(Failure);
  expect(owes()).toBe(someone.expires_at);
  await finishSignOut();
  expect(methods(sent)).toEqual(["DELETE", "GET", "GET", "DELETE"]);
  expect([owes(), ended.value]).toEqual([null, "You are signed out."]);
  await finishSignOut();
  expect(sent).toHaveLength(4);
});

it("leaves alone the session of who has signed in since", async () => {
  session.value = someone;
  const later = { ...someone, expires_at: "2026-01-02T21:00:00.000Z" };
  const sent = answering([503, {}], [200, later], [503, {}], [200, someone], [200, someone]);
  await signOut();
  await finishSignOut(); // by the provider, on another page
  expect(methods(sent)).toEqual(["DELETE", "GET"]);
  session.value = someone;
  await signOut();
  await signIn({ bearer_token: "x" });
  await finishSignOut();
  expect(methods(sent).slice(2)).toEqual(["DELETE", "POST", "GET"]);
});

it("shows nothing any more at once while the server hangs, says that nothing is confirmed, and gives up waiting", async () => {
  vi.useFakeTimers();
  session.value = someone;
  vi.stubGlobal("fetch", () => new Promise(() => {})); // as of a server that is stopped
  const leaving = signOut();
  expect(session.value).toBeNull();
  expect(ended.value).toContain("the server has not confirmed that the session has ended");
  expect(owes()).toBe(someone.expires_at); // also for who closes the page now
  await vi.advanceTimersByTimeAsync(patient);
  expect(await leaving).toBe(false);
  const finishing = expect(finishSignOut()).rejects.toThrow("does not answer");
  await vi.advanceTimersByTimeAsync(patient);
  await finishing;
  vi.useRealTimers();
  answering([200, someone], [204, null]);
  await finishSignOut();
  expect([owes(), ended.value]).toEqual([null, "You are signed out."]);
});

it("says so when signing out is refused, and owes nothing once it is done", async () => {
  session.value = someone;
  answering([403, { code: "forbidden", detail: "another origin" }], [204, null]);
  expect(await signOut()).toBe(true);
  expect([session.value, owes()]).toEqual([null, null]);
  expect(ended.value).toBe("The session has not ended, and the browser keeps it: another origin");
  session.value = someone;
  expect(await signOut()).toBe(true);
  expect([session.value, owes(), ended.value]).toEqual([null, null, "You are signed out."]);
});
