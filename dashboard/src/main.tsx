import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Failure } from "./api/client";
import { App } from "./app";
import { Door } from "./pages/door";
import { Loading } from "./parts/signs";
import { tick } from "./state/clock";
import { press } from "./state/keys";
import { connection, patience, sleep } from "./state/live";
import { finishSignOut, recall, session, signIn, takeCode, takeRefusal } from "./state/session";
import { showTheme } from "./state/theme";
import "./style/main.css";

let failed = takeRefusal();

/** Signs in with the code of the address, if there is one, or learns who is signed in. */
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
  for (let failures = 1; session.value === undefined; failures++) {
    try {
      await finishSignOut();
      await recall();
      if (session.value) failed = "";
    } catch {
      await sleep(patience(failures, 1000), never);
    }
  }
}

function Root() {
  useEffect(() => tick(() => connection.value === "lost"), []);
  if (session.value === undefined) return <Loading />;
  return session.value === null ? <Door failed={failed} /> : <App />;
}

showTheme();
document.addEventListener("keydown", (e) => {
  if (session.value && press(e)) e.preventDefault();
});
const root = document.getElementById("app");
if (root !== null) render(<Root />, root);
void begin();
