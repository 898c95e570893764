import { base } from "../api/client";
import { Copy } from "./signs";
import { quoted } from "./words";

/** What asks or does the same from a shell. The token is not in it. */
export function curl(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): string {
  const line = ["curl -s"];
  if (method !== "GET") line.push(`-X ${method}`);
  line.push(quoted(base + path), '-H "Authorization: Bearer $FENCEPOST_TOKEN"');
  if (body !== undefined) line.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  return line.join(" ");
}

/** A line that acquires a lock for a minute; with a wait, one that queues for it. */
export function acquire(name: string, wait?: { wait_seconds: number }): string {
  return curl("POST", `/locks/${name}`, { ttl_seconds: 60, ...wait });
}

/** A line for a shell, with a button that copies it. */
export function Shell({ id, title = "With curl", line }: { id: string; title?: string; line: string }) {
  return (
    <section class="stack" aria-labelledby={id}>
      <div class="head">
        <h2 id={id}>{title}</h2>
        <Copy text={line} />
      </div>
      <pre>{line}</pre>
    </section>
  );
}
