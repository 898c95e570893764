package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/test/faults/history"
)

// Entry is an entry as answers show it.
type Entry struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	State    string  `json:"state"`
	Token    string  `json:"token"`
	Fence    int64   `json:"fence"`
	TTL      float64 `json:"ttl_seconds"`
	Position int     `json:"position"`
	Holder   string  `json:"holder"`

	ExpiresAt time.Time `json:"expires_at"`
}

// Problem is the part of an error answer that the tests judge.
type Problem struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`

	// MayHaveTakenEffect is false if the server vouches for the contrary.
	MayHaveTakenEffect *bool  `json:"may_have_taken_effect"`
	Entry              *Entry `json:"entry"` // still stands
}

// Answer is what came back from one attempt, or the lack of it.
type Answer struct {
	Call, Return time.Duration
	Until        time.Duration // when the lease ends at the earliest; 0 if it does not say
	Status       int           // 0 without an answer
	Entry        Entry
	Problem      Problem
	Header       http.Header
	Body         []byte
	Err          error // why there is no answer
}

// notSent says that the request cannot have reached a server.
func (a Answer) notSent() bool {
	var op *net.OpError
	return a.Err != nil && errors.As(a.Err, &op) && op.Op == "dial"
}

// harmless says that the attempt has changed nothing: it was not sent, or the
// server vouches for it. A server that lies about it is found by the checks.
func (a Answer) harmless() bool {
	vouched := a.Status == http.StatusServiceUnavailable &&
		a.Problem.MayHaveTakenEffect != nil && !*a.Problem.MayHaveTakenEffect
	return a.notSent() || vouched
}

// waiting says that the entry is still in its queue.
func (a Answer) waiting() bool { return a.Status == http.StatusAccepted }

// outcome translates the status; ok is false for one that no correct server
// gives to a correct client, whatever breaks.
func (a Answer) outcome() (outcome history.Outcome, ok bool) {
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return history.OK, true
	case http.StatusLocked:
		return history.Refused, true
	case http.StatusGone:
		return history.Lost, true
	case 0, http.StatusServiceUnavailable, http.StatusAccepted:
		return history.Unknown, true
	default:
		return history.Unknown, false
	}
}

func (a *Answer) parse() error {
	if len(a.Body) == 0 {
		return nil
	}
	if a.Status >= 400 {
		return json.Unmarshal(a.Body, &a.Problem)
	}
	return json.Unmarshal(a.Body, &a.Entry)
}

// String is for messages; it leaves the lock token out.
func (a Answer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("no answer after %v: %v", a.Return-a.Call, a.Err)
	}
	return fmt.Sprintf(
		"%d after %v: entry %q state %q fence %d position %d, code %q reason %q detail %q", a.Status,
		a.Return-a.Call, a.Entry.ID, a.Entry.State, a.Entry.Fence, a.Entry.Position, a.Problem.Code,
		a.Problem.Reason, a.Problem.Detail,
	)
}
