import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Failure } from "./api/client";
import { App } from "./app";
import { Door } from "./pages/door";
import { Loading } from "./parts/signs";
import { tick } from "./state/clock";
import { press } from "./state/keys";
import { connection, patience, sleep } from "./state/live";
import { finishSignOut, leaveUnconfirmed, owes, recall, session, signIn, takeCode, takeRefusal } from "./state/session";
import { showTheme } from "./state/theme";
import "./style/main.css";

let failed = takeRefusal();
const away = new Failure("unreachable", "The server does not answer.");

/** Signs in with the code of the address, if there is one, or reads the session. */
async function begin(): Promise<void> {
  const code = takeCode();
  if (code !== null) {
    try {
      return await signIn({ code });
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      failed = e.message;
    }
  }
  const never = new AbortController().signal;
  if (owes() !== null) leaveUnconfirmed();
  for (let failures = 1; ; failures++) {
    try {
      await finishSignOut();
      await recall();
      if (session.value) failed = "";
      return;
    } catch {
      if (session.value) return; // the operator has signed in meanwhile
      slow.value = true;
      await sleep(patience(failures, 1000), never);
    }
  }
}

/** Whether the answer about the session is still pending. */
const slow = signal(false);

function Root() {
  useEffect(() => tick(() => connection.value === "lost"), []);
  if (session.value === undefined) return <Loading failure={slow.value ? away : undefined} />;
  return session.value === null ? <Door failed={failed} /> : <App />;
}

showTheme();
document.addEventListener("keydown", (e) => {
  if (session.value && press(e)) e.preventDefault();
});
const root = document.getElementById("app");
if (root !== null) render(<Root />, root);
void begin();
