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
		return api.Problem{Detail: "a lock name is 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + -"}
	case api.Unauthenticated:
		return api.Problem{Detail: "one Authorization header with a bearer token is needed"}
	case api.Forbidden:
		return api.Problem{Detail: "the caller lacks the scope locks:write"}
	case api.TokenMismatch:
		return api.Problem{Detail: "the lock token does not belong to this entry"}
	case api.NotFound:
		return api.Problem{Detail: "there is nothing at this path"}
	case api.MethodNotAllowed:
		return api.Problem{Detail: "this path has no such method"}
	case api.IdempotencyMismatch:
		return api.Problem{Detail: "the idempotency key was used before with other parameters"}
	case api.ModeMismatch:
		return api.Problem{
			Detail: "the lock orders:42 is in use as a semaphore with the limit 4",
			InUse:  &api.SetLock{Name: "orders:42", Mode: "semaphore", Limit: 4},
		}
	case api.Deadlock:
		return api.Problem{
			Detail: "to wait would close a cycle: each worker in it would wait forever",
			Cycle: []api.CycleStep{
				{Holder: "shipping", WaitsFor: "orders:1", InTheWay: "billing", Holds: true},
				{Holder: "billing", WaitsFor: "stock:7", InTheWay: "shipping", Holds: true},
			},
		}
	case api.Changed:
		return api.Problem{Detail: "the entry with this id has another fence than was seen"}
	case api.NoCallbackSecret:
		return api.Problem{Detail: "the tenant has no callback secret"}
	case api.Lost:
		return api.Problem{Detail: "the entry is gone: expired", Reason: "expired"}
	case api.BodyTooLarge:
		return api.Problem{Detail: "a body may be 16384 bytes long"}
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
			Detail:  "others are in front; with wait_seconds the request would queue",
			Holders: holders, Waiting: &waiting,
		}
	case api.TimedOut:
		return api.Problem{
			Detail: "others were in front for all of wait_seconds", Holders: holders, Waiting: &waiting,
		}
	case api.Closed:
		until := api.Instant("2026-01-02T16:00:00.000Z")
		return api.Problem{
			Detail: "an operator has closed the lock: no new entry joins its queue before the time in until",
			Reason: "the stock is counted", Until: &until, Holders: holders, Waiting: &waiting,
		}
	case api.RateLimited:
		return api.Problem{
			Detail: "the tenant's quota requests_per_second is 500 at each replica, and used up",
			Quota:  "requests_per_second", Limit: new(500), Used: new(500),
		}
	case api.Overloaded:
		return api.Problem{
			Detail: "too many requests are under way at once", MayHaveTakenEffect: new(bool),
		}
	case api.QuotaExceeded:
		return api.Problem{
			Detail: "the tenant's quota held_locks is 1000, and 1000 are in use",
			Quota:  "held_locks", Limit: new(1000), Used: new(1000),
		}
	case api.StoreUnavailable:
		return api.Problem{Detail: "the store did not answer in time", MayHaveTakenEffect: new(true)}
	case api.Draining:
		return api.Problem{
			Detail:             "this replica is shutting down; go on at another, or here when it is back",
			MayHaveTakenEffect: new(bool),
		}
	case api.FenceFloorRequired:
		return api.Problem{Detail: "the store lost its past", MayHaveTakenEffect: new(bool)}
	case api.Internal:
		return api.Problem{
			Detail: "something went wrong in the server; the request id finds it in the log",
		}
	}
	return api.Problem{}
}
