import { beforeEach, expect, it, vi } from "vitest";
import { Failure } from "../api/client";
import { ended, lost, provider, recall, type Session, session, signIn, takeCode, takeRefusal } from "./session";

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
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
  return sent;
}

beforeEach(() => {
  session.value = undefined;
  ended.value = "";
});

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

it("takes the code out of the address", () => {
  history.replaceState(null, "", "#code=ABC234");
  expect(takeCode()).toBe("ABC234");
  expect(location.hash).toBe("");
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
  expect(takeRefusal()).toBe("You could not be signed in.");
  history.replaceState(null, "", "#sign-in=<b>");
  expect(takeRefusal()).toBe("");
});
