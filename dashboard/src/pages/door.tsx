import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Failure } from "../api/client";
import { Hint } from "../parts/hint";
import { Posts } from "../parts/signs";
import { ended, provider, signIn } from "../state/session";

/** Whether the server is on this machine, as one with --dev is by default. */
export function isHere(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/** Where one signs in with a bearer token, or by the identity provider if there is one. */
export function Door({ failed }: { failed: string }) {
  const token = useSignal("");
  const trouble = useSignal(failed);
  const busy = useSignal(false);
  const elsewhere = useSignal<Awaited<ReturnType<typeof provider>>>(null);
  useEffect(() => {
    document.title = "Sign in – Fencepost";
    provider().then(
      (p) => {
        elsewhere.value = p;
      },
      () => {}, // a token is left to sign in with
    );
  }, [elsewhere]);
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    busy.value = true;
    trouble.value = "";
    try {
      await signIn({ bearer_token: token.value.trim() });
    } catch (error) {
      trouble.value = error instanceof Failure ? error.message : "Something went wrong on this page.";
    }
    busy.value = false;
  };
  return (
    <main class="door">
      <form class="sheet pad" onSubmit={submit}>
        <p class="brand">
          <Posts />
          Fencepost
        </p>
        <h1>Sign in</h1>
        {elsewhere.value !== null && (
          <p>
            <a class="button main" href={elsewhere.value.href}>
              Sign in with {elsewhere.value.host}
            </a>
          </p>
        )}
        <p class="soft">
          {elsewhere.value === null ? "Use" : "Or use"} a bearer token
          <Hint term="token" /> with the scope <b>admin</b> or <b>tenant-admin</b>.
          {isHere(location.hostname) && (
            <>
              {" "}
              A server started with <b>--dev</b> writes one to the file <b>dev-token</b> in its data folder.
            </>
          )}
        </p>
        {ended.value !== "" && trouble.value === "" && <p class="note wait">{ended.value}</p>}
        {trouble.value !== "" && (
          <p class="note harm" role="alert">
            <span aria-hidden="true">⚠ </span>
            {trouble.value}
          </p>
        )}
        <label class="field">
          Bearer token
          <input
            type="password"
            name="token"
            autoComplete="off"
            spellcheck={false}
            required
            value={token.value}
            onInput={(e) => {
              token.value = e.currentTarget.value;
            }}
          />
        </label>
        <button class="main" type="submit" disabled={busy.value}>
          {busy.value ? "Signing in…" : "Sign in"}
        </button>
        <p class="soft small">
          The browser sends the token once and does not keep it. The session ends with the token, after 12 hours at
          most.
        </p>
      </form>
    </main>
  );
}
