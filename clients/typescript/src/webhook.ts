import { webCrypto } from "./clock.js";
import { BadWebhook } from "./errors.js";
import { type FencepostEvent, parse } from "./wire.js";

const tolerance = 300; // seconds
const leastSecret = 24; // bytes

/** Of a request: a `Headers`, or the object that Node's http server has. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Returns the event of a delivery that is signed with one of the secrets, as Standard Webhooks 1.0
 * says, and not older or newer than five minutes. While you rotate a secret, give both. The body
 * has to be as it came, before anything parses it. Throws {@link BadWebhook}: answer it with 400.
 *
 * A delivery may come again, also from an attacker within the five minutes: pass over an event
 * whose `webhook-id` you have seen.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  now: Date = new Date(),
): Promise<FencepostEvent> {
  const fault = await faultOf(headers, body, [secrets].flat(), now.getTime() / 1000);
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const event = fault === undefined ? (parse(text) as FencepostEvent | undefined) : undefined;
  const texts = [event?.id, event?.type, event?.timestamp];
  if (texts.some((text) => typeof text !== "string") || !isObject(event?.data)) {
    const detail = fault ?? "the body is no event";
    throw new BadWebhook({ code: "bad_webhook", title: "the delivery is not valid", detail });
  }
  return event as FencepostEvent;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Why a delivery is not believed, or undefined. */
async function faultOf(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secrets: string[],
  now: number,
): Promise<string | undefined> {
  const id = header(headers, "webhook-id");
  if (!/^[\w-]{1,64}$/.test(id)) {
    return "the id is not valid"; // its dots could move what is signed
  }
  const timestamp = header(headers, "webhook-timestamp");
  if (!/^\d+$/.test(timestamp) || Math.abs(now - Number(timestamp)) > tolerance) {
    return "the timestamp is not of now";
  }
  const { subtle } = await webCrypto();
  const signed = signedBytes(`${id}.${timestamp}.`, body);
  const signatures = header(headers, "webhook-signature").split(" ");
  for (const secret of secrets) {
    const raw = bytesOf(secret.replace(/^whsec_/, ""));
    if (!raw || raw.length < leastSecret) {
      return "a secret is not valid";
    }
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await subtle.importKey("raw", raw, hmac, false, ["verify"]);
    for (const text of signatures.filter((s) => s.startsWith("v1,"))) {
      const signature = bytesOf(text.slice(3));
      // verify compares in constant time.
      if (signature && (await subtle.verify("HMAC", key, signature, signed))) {
        return undefined;
      }
    }
  }
  return "no signature is of these secrets";
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : fieldOf(headers, name);
  return [value ?? ""].flat().join(" ");
}

function fieldOf(headers: Exclude<WebhookHeaders, Headers>, name: string) {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
}

function signedBytes(prefix: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const parts = [encoder.encode(prefix), typeof body === "string" ? encoder.encode(body) : body];
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  all.set(parts[0] as Uint8Array);
  all.set(parts[1] as Uint8Array, parts[0]?.length);
  return all;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
