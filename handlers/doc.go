// Package handlers speaks HTTP for package service: it reads requests strictly,
// calls one use case each, and writes answers and problem documents (RFC 9457).
// It is the only package that knows gin.
//
// A request passes, in this order: request id, trace and access log, recovery,
// bearer token, scope, lock name, name patterns, headers, body. The first
// check that fails answers it.
package handlers
