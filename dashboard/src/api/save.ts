import { base, Failure, failureOf } from "./client";

/**
 * Has the browser keep an answer as a file. It is asked for whole before: of an answer that
 * breaks off nothing is kept: a part could be mistaken for the whole.
 */
export async function save(path: string, type: string, name: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(base + path, { headers: { Accept: type }, cache: "no-store" });
  } catch {
    throw new Failure("unreachable", "Cannot reach the server.");
  }
  if (!response.ok) throw failureOf(response.status, await response.json().catch(() => null));
  let content: Blob;
  try {
    content = await response.blob();
  } catch {
    throw new Failure("broken_off", "The connection ended before the export was complete. Try again.");
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Browsers read it when they begin to write the file, which is not at once.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
