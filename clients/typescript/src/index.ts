/**
 * Locks over HTTP with Fencepost: renewed in time, stopped in time, with a fence for each write.
 *
 * @module
 */
export { type ClientOptions, Fencepost, type Work } from "./client.js";
export type { Clock, Reading } from "./clock.js";
export type { Log } from "./core.js";
export {
  BadWebhook,
  Cancelled,
  Deadlock,
  FencepostError,
  Forbidden,
  InvalidRequest,
  LockClosed,
  LockHeld,
  LockLost,
  NoAnswer,
  Superseded,
  Unauthenticated,
  WaitTimeout,
} from "./errors.js";
export type { EventFilter } from "./events.js";
export type { Held } from "./held.js";
export type {
  AsyncOptions,
  HoldOptions,
  LockOptions,
  SetOptions,
  TryOptions,
  TrySetOptions,
} from "./options.js";
export type { Pending } from "./pending.js";
export { verifyWebhook, type WebhookHeaders } from "./webhook.js";
export type * from "./wire.js";
