// Package openapi holds the description of the HTTP interface (OpenAPI 3.0) and
// the page that shows it to people.
//
// openapi.json is generated from the annotations of package handlers and is never
// edited by hand: run go generate here after a change of them. The general part
// of the description stands in this file.
package openapi

// @title       Fencepost
// @version     1.0
// @description Locks over HTTP: acquire a lock, queue for it in order, and get a fence with every grant. A fence is a number that only grows.
// @description
// @description A lease is not a guarantee: it also frees the lock of a holder that is only slow. The protected resource must reject a write whose fence is below the greatest that it has seen.
// @description
// @description Press Authorize and paste a bearer token to try an operation; `make run` prints one and stores it in `data/dev-token`. Errors are problem documents (RFC 9457) with a `code` for programs. Durations are seconds, instants RFC 3339 in UTC. The server rejects unknown fields.
// @license.name Apache-2.0
// @license.url  https://www.apache.org/licenses/LICENSE-2.0

// @tag.name        locks
// @tag.description Acquire, renew and release a lock. Send the `token` of an entry in the header `Lock-Token`, never in a URL.

// @tag.name        locksets
// @tag.description Several locks, all or none, with one token, one lease and one fence.

// @tag.name        look
// @tag.description See the holders and waiters of locks, without their tokens.

// @tag.name        webhooks
// @tag.description Send lock events to a URL, signed as Standard Webhooks 1.0.

// @tag.name        admin
// @tag.description For operators of one tenant or of all.

// @tag.name        operations
// @tag.description Probes, metrics, this description and the dashboard. They need no bearer token.

// Replaced by the generator: Swagger 2.0, which is what annotations become first,
// has no word for bearer tokens.
//
// @securityDefinitions.apikey bearer
// @in                         header
// @name                       Authorization
