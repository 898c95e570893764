// A client of redlock's using, which extends the lock while its routine runs.
import readline from "node:readline";
import Client from "ioredis";
import Redlock, { ExecutionError } from "redlock";

const client = new Client(`redis://${process.env.FENCETEST_SERVER}`);
const redlock = new Redlock([client]);
redlock.on("error", () => {}); // each try that finds the lock held is one

let signal, done, ended; // of the routine that runs

const say = (event, more) => console.log(JSON.stringify({ event, ...more }));

// A lock that took more than its TTL to acquire is lost at once, so that one call waits for less:
// for redlock's default of 10 tries, 2 s.
async function acquire({ name, ttl_ms, wait_ms }) {
  const until = performance.now() + wait_ms;
  for (;;) {
    const tries = Math.ceil((until - performance.now()) / redlock.settings.retryDelay);
    const settings = { retryCount: Math.max(0, Math.min(10, tries)) };
    const said = await use(name, ttl_ms, settings);
    if (said !== "not_held" || performance.now() >= until) return said;
  }
}

function use(name, ttl, settings) {
  return new Promise((answer) => {
    ended = redlock.using([name], ttl, settings, (given) => {
      signal = given;
      signal.addEventListener("abort", () => say("lost"));
      answer("held");
      return new Promise((resolve) => (done = resolve));
    }).catch((error) => error);
    ended.then((error) => answer(error instanceof ExecutionError ? "not_held" : error));
  });
}

async function release() {
  done();
  const error = await ended;
  if (error === undefined) return "released";
  return error instanceof ExecutionError ? "lost" : error;
}

async function answer(request) {
  switch (request.do) {
    case "acquire": return acquire(request);
    case "check": return signal.aborted ? "lost" : "held";
    default: return release();
  }
}

await client.ping();
say("ready");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const said = await answer(JSON.parse(line)).catch((error) => error);
  if (said instanceof Error) say("error", { text: String(said) });
  else say(said);
}
process.exit();
