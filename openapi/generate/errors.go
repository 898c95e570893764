package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/fencepost/fencepost/api"
)

// errorsPage is the reference of errors, which the table of codes in package api makes.
const errorsPage = "../docs/reference/errors.md"

const errorsHead = `# Errors

Look up what an error code means, and what to do. Each error is ` + "`application/problem+json`" + ` (RFC 9457), such as:

`

const errorsRules = `
Decide by ` + "`code`" + `, and by the status if your program does not know the code. ` + "`request_id`" + ` finds the
request in the server's log. ` + "`may_have_taken_effect`" + ` reports whether the server may have carried out the request.

Retry 429, 500, 503 and requests without an answer, with the same ` + "`Idempotency-Key`" + `, after
` + "`Retry-After`" + ` seconds if the answer has it. A retry of anything else gets the same answer.

The examples below leave out ` + "`type`, `title`, `status` and `request_id`" + `.
`

// writeErrors returns the page.
func writeErrors() ([]byte, error) {
	var b bytes.Buffer
	whole, err := problemExample(api.NotFound)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "%s```json\n%s\n```\n%s", errorsHead, whole, errorsRules)
	for _, code := range api.Codes() {
		text, err := problemExample(code)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n## `%s`\n\n**%d.** %s %s\n\n```json\n%s\n```\n",
			code, code.Status(), code.When(), code.Advice(), ownMembers.ReplaceAllString(text, "{$1$2"))
	}
	return b.Bytes(), nil
}

// ownMembers finds the members of a problem that say something about its case.
var ownMembers = regexp.MustCompile(
	`(?s)^.*?("detail":.*),"request_id":"[0-9a-f]*"(.*)$`,
)

// problemExample returns a problem of the code, as the server writes it.
func problemExample(code api.Code) (string, error) {
	p := exampleOf(code)
	if p.Detail == "" {
		return "", fmt.Errorf("the code %s needs an example", code)
	}
	p.Type, p.Title, p.Status, p.Code = code.Type(), code.Title(), code.Status(), code
	p.RequestID = "4f1a7c0b9d2e83a6"
	text, err := json.Marshal(p)
	// A line for the members that all have, and one for the rest.
	return strings.Replace(string(text), `,"detail"`, ",\n \"detail\"", 1), err
}

// exampleOf returns what belongs to the case in the example of a code.
func exampleOf(code api.Code) api.Problem {
	switch code {
	case api.InvalidRequest:
		return api.Problem{Detail: "ttl is not known here; did you mean ttl_seconds?", Field: "ttl"}
	case api.InvalidName:
		return api.Problem{Detail: "a lock name is 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + " +
			"- and begins with a letter or a digit"}
	case api.Unauthenticated:
		return api.Problem{Detail: "the request has no credential; " +
			"send one Authorization header with a bearer token"}
	case api.Forbidden:
		return api.Problem{Detail: "the caller lacks the scope locks:write; use a credential that has it"}
	case api.TokenMismatch:
		return api.Problem{Detail: "the lock token does not belong to this entry; " +
			"send the one that its acquire returned"}
	case api.NotFound:
		return api.Problem{Detail: "there is nothing at this path; /docs/ lists the paths"}
	case api.MethodNotAllowed:
		return api.Problem{Detail: "this path has no such method; use a method of the Allow header"}
	case api.IdempotencyMismatch:
		return api.Problem{Detail: "the idempotency key was used before with other parameters; " +
			"repeat those, or use a new key"}
	case api.ModeMismatch:
		return api.Problem{
			Detail: "the lock orders:42 is in use in the mode semaphore; " +
				"use that, or wait until it is free",
			InUse: &api.SetLock{Name: "orders:42", Mode: "semaphore", Limit: 4, Permits: 1},
		}
	case api.Deadlock:
		return api.Problem{
			Detail: "to wait would close a cycle of waits; release what the holder has, then acquire again",
			Cycle: []api.CycleStep{
				{Holder: "shipping", WaitsFor: "orders:1", InTheWay: "billing", Holds: true},
				{Holder: "billing", WaitsFor: "stock:7", InTheWay: "shipping", Holds: true},
			},
		}
	case api.Superseded:
		return api.Problem{
			Detail: "a later request with only_newest took its place; leave the work to that one",
		}
	case api.Changed:
		return api.Problem{Detail: "the entry has another fence than was seen; " +
			"read the lock again before you revoke"}
	case api.NoCallbackSecret:
		return api.Problem{Detail: "callbacks are signed, and the tenant has no secret for that; " +
			"POST /webhooks/callback-secret/rotate makes one"}
	case api.Lost:
		return api.Problem{Detail: "the entry is gone: expired; " +
			"stop what it protects, then acquire again with a new Idempotency-Key", Reason: "expired"}
	case api.BodyTooLarge:
		return api.Problem{Detail: "the body is too long; send 16384 bytes at most"}
	case api.UnsupportedMedia:
		return api.Problem{Detail: "send the body as application/json"}
	default:
		return exampleOfBusy(code)
	}
}

// exampleOfBusy is exampleOf for the codes of 423 and above.
func exampleOfBusy(code api.Code) api.Problem {
	holders, waiting := []api.Holder{{
		Holder: "worker-7", Since: "2026-01-02T15:04:05.000Z", Fence: 1042, Mode: "exclusive",
	}}, 1
	switch code {
	case api.Held:
		return api.Problem{
			Detail: "others hold the lock or wait for it; " +
				"retry after Retry-After, or queue with wait_seconds",
			Holders: holders, Waiting: &waiting,
		}
	case api.TimedOut:
		return api.Problem{
			Detail: "others were in front for all of wait_seconds, and the request left the queue; " +
				"retry or wait longer", Holders: holders, Waiting: &waiting,
		}
	case api.Closed:
		until := api.Instant("2026-01-02T16:00:00.000Z")
		return api.Problem{
			Detail: "an operator has closed the lock: no new entry joins its queue; " +
				"retry after the time in until",
			Reason: "the stock is counted", Until: &until, Holders: holders, Waiting: &waiting,
		}
	case api.RateLimited:
		return api.Problem{
			Detail: "the tenant's quota requests_per_second is 500 at each replica, and used up; " +
				"retry after Retry-After",
			Quota: "requests_per_second", Limit: new(500), Used: new(500),
		}
	case api.Overloaded:
		return api.Problem{
			Detail: "too many requests are under way; " +
				"retry after Retry-After", MayHaveTakenEffect: new(bool),
		}
	case api.QuotaExceeded:
		return api.Problem{
			Detail: "the tenant's quota held_locks is 1000, and 1000 are in use; " +
				"release some, or ask for a higher quota",
			Quota: "held_locks", Limit: new(1000), Used: new(1000),
		}
	case api.StoreUnavailable:
		return api.Problem{Detail: "the store did not answer in time; " +
			"retry with the same Idempotency-Key", MayHaveTakenEffect: new(true)}
	case api.Draining:
		return api.Problem{
			Detail:             "this replica is shutting down; retry at another, or here when it is back",
			MayHaveTakenEffect: new(bool),
		}
	case api.FenceFloorRequired:
		return api.Problem{
			Detail: "the store was restored from a backup: its cluster id is not the one in its data; " +
				"nothing is granted until all servers are stopped and one is started with " +
				"--fence-floor set above every fence ever handed out",
			MayHaveTakenEffect: new(bool),
		}
	case api.Internal:
		return api.Problem{
			Detail: "something went wrong in the server; " +
				"retry, and find the cause by the request id in its log",
		}
	}
	return api.Problem{}
}
