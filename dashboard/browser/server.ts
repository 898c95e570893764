import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const root = join(import.meta.dirname, "..", "..");

/** The variable of the environment that says in which folder the programs are. */
export const programs = "DASHBOARD_PROGRAMS";
const program = (name: string) => join(process.env[programs] ?? "", name);

/** What comes of asking for a lock. */
interface Answer {
  status: number;
  id: string;
  token: string;
  fence: number;
  reason?: string;
}

/** A server of this tree, with its store inside, and what tests do to it. */
export class Server {
  private process: ChildProcess | undefined;
  private output = "";

  private constructor(
    private readonly dir: string,
    private readonly port: number,
  ) {}

  static async start(): Promise<Server> {
    const s = new Server(mkdtempSync(join(tmpdir(), "dashboard-")), await freePort());
    await s.run();
    return s;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts the program, or starts it again on its data. */
  async run(): Promise<void> {
    this.output = "";
    const args = [
      "--dev",
      "--listen",
      `127.0.0.1:${this.port}`,
      "--data-dir",
      join(this.dir, "data"),
      "--log-level",
      "error",
      "--webhook-allow-http",
      "--webhook-allow",
      "127.0.0.0/8",
      "--webhook-ports",
      "*",
    ];
    const child = spawn(program("api"), args, { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout?.on("data", (text) => {
      this.output += text;
    });
    this.process = child;
    await until("the server is ready", async () => {
      if (child.exitCode !== null) throw new Error("the server has ended");
      return this.output.includes("#code=") && (await fetch(`${this.url}/readyz`).catch(() => null))?.ok === true;
    });
  }

  /** Kills the program, as a crash would. */
  async kill(): Promise<void> {
    const child = this.process;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** Has the program hang, as one does that swaps or is debugged: connections stay, and nothing is answered. */
  hang(): void {
    this.process?.kill("SIGSTOP");
  }

  /** Has a program go on that hangs. */
  goOn(): void {
    this.process?.kill("SIGCONT");
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** The link that signs in once. */
  link(): string {
    return /http:\S+#code=\w+/.exec(this.output)?.[0] ?? "";
  }

  /** The token that a development server leaves, of an operator of all tenants. */
  get token(): string {
    return readFileSync(join(this.dir, "data", "dev-token"), "utf8").trim();
  }

  /** A token of a tenant. */
  tokenOf(tenant: string, scope: string): string {
    const args = ["token", "--dev", "--data-dir", join(this.dir, "data"), "--tenant", tenant, "--scope", scope];
    return execFileSync(program("api"), args, { encoding: "utf8" }).trim();
  }

  /** Asks for a lock. */
  async acquire(name: string, body: object, token = this.token): Promise<Answer> {
    return this.post(`/locks/${name}`, body, token);
  }

  async post(path: string, body: object, token = this.token): Promise<Answer> {
    return this.request("POST", path, body, token);
  }

  async request(method: string, path: string, body: object, token = this.token): Promise<Answer> {
    const r = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: r.status, ...((await r.json()) as Omit<Answer, "status">) };
  }

  async delete(path: string): Promise<void> {
    await fetch(this.url + path, { method: "DELETE", headers: { Authorization: `Bearer ${this.token}` } });
  }

  /** Takes a lock and has its holder revoked, as a script would. */
  async revoke(name: string, reason: string, token = this.token, tenant = "demo"): Promise<void> {
    const held = await this.acquire(name, { holder: "worker-7", ttl_seconds: 60 }, token);
    const path = `/admin/locks/${tenant}/${name}/entries/${held.id}/revoke`;
    const done = await this.post(path, { fence: held.fence, reason }, token);
    if (done.status !== 200) throw new Error(`${name} was not revoked: ${done.status}`);
  }

  /** Renews a lock, and returns what is answered. */
  async renew(name: string, lockToken: string, token = this.token): Promise<{ status: number; reason?: string }> {
    const r = await fetch(`${this.url}/locks/${name}/renew`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${token}`, "Lock-Token": lockToken },
    });
    return { status: r.status, ...((await r.json()) as { reason?: string }) };
  }

  async release(name: string, lockToken: string, token = this.token): Promise<void> {
    await fetch(`${this.url}/locks/${name}`, {
      method: "DELETE",
      headers: { Authorization: `Bearer ${token}`, "Lock-Token": lockToken },
    });
  }

  /** Fills the server with lively traffic; the function that it returns ends that. */
  traffic(...args: string[]): () => Promise<void> {
    const child = spawn(
      program("seed"),
      ["-url", this.url, "-token-file", join(this.dir, "data", "dev-token"), ...args],
      {
        stdio: "ignore",
      },
    );
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    return () => {
      child.kill("SIGTERM");
      return ended;
    };
  }
}

/** Waits until something is so, or fails. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await holds()); ) {
    if (Date.now() > deadline) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const s = createServer();
    s.once("error", reject);
    s.listen(0, "127.0.0.1", () => {
      const at = s.address();
      s.close(() => resolve(typeof at === "object" && at !== null ? at.port : 0));
    });
  });
}
