// Package openapi holds the description of the HTTP interface (OpenAPI 3.0) and
// the page that shows it to people.
//
// openapi.json is generated from the annotations of package handlers and is never
// edited by hand: run go generate here after a change of them. The general part
// of the description stands in this file.
package openapi

// @title       Fencepost
// @version     1.0
// @description Locks over HTTP: take a lock, queue for it fairly, and get with every grant a fence, a number that only grows.
// @description
// @description The resource that the lock protects must refuse a write whose fence is below the newest that it has seen. A lease is a guess: it frees the lock of a holder that died, and also that of a holder that is merely slow. Only the check of the fence keeps a late write out.
// @description
// @description Requests carry a JWT as their bearer token; `security` says which need none (health, metrics, this description), and a server may take client certificates or, for its dashboard, a session in its place. Every response carries `X-Request-Id`, which is the request's own if that is harmless; `traceparent` is taken up. Errors are problem documents (RFC 9457): `code` is for programs, `detail` for people. Durations are in seconds, instants in RFC 3339 (UTC), and unknown fields in a request are refused.
// @license.name Apache-2.0
// @license.url  https://www.apache.org/licenses/LICENSE-2.0

// @tag.name        locks
// @tag.description Take, keep and give back a lock. The lock token that comes with an entry proves that it is yours; it belongs into the header `Lock-Token`, never into a URL.

// @tag.name        locksets
// @tag.description Several locks at once, all or nothing, with one token and a fence for each. If one ends, all do.

// @tag.name        look
// @tag.description See the holders and waiters of locks. Lock tokens are never shown here.

// @tag.name        webhooks
// @tag.description Have what happens to locks told to a URL. Deliveries are signed after Standard Webhooks 1.0. A secret is shown once.

// @tag.name        admin
// @tag.description For those who look after all tenants.

// @tag.name        operations
// @tag.description For those who run the server. No bearer token is needed.

// Replaced by the generator: Swagger 2.0, which is what annotations become first,
// has no word for bearer tokens.
//
// @securityDefinitions.apikey bearer
// @in                         header
// @name                       Authorization
