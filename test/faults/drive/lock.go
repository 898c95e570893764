package drive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/faults/history"
)

// Request says what to acquire and how.
type Request struct {
	Lock      string
	TTL, Wait time.Duration
	Key       string // Idempotency-Key; without one an unknown outcome is final
	Replica   int    // index of the one to ask first; later attempts go round
	Attempts  int    // 1 when zero
	Async     bool   // the replicas keep the place
}

// Hold is an entry that a client knows: granted, or waiting.
type Hold struct {
	Lock, ID string
	token    string
	Fence    int64
	TTL      time.Duration
	// when the lease ends unless it is renewed, says the answer; on the clock of the history
	Until   time.Duration
	Waiting bool
	Set     bool // granted as a lock set; Lock is one of its locks
}

// path is where the hold's token counts.
func (h *Hold) path() string {
	if h.Set {
		return "/locksets/" + h.ID
	}
	return "/locks/" + h.Lock
}

// Post makes one attempt at POST /locks/{name} and records nothing.
func (c *Client) Post(ctx context.Context, replica int, r Request) Answer {
	header := map[string]string{}
	if r.Key != "" {
		header["Idempotency-Key"] = r.Key
	}
	// No holder is named: a client whose earlier entry is still there, because it
	// does not know of it, would be refused as waiting for itself.
	body := map[string]any{
		"ttl_seconds":  r.TTL.Seconds(),
		"wait_seconds": r.Wait.Seconds(),
		"async":        r.Async,
	}
	a := c.send(ctx, replica, http.MethodPost, "/locks/"+r.Lock, header, body, r.Wait)
	if a.Status == http.StatusCreated &&
		(a.Entry.ID == "" || a.Entry.Token == "" || a.Entry.Fence <= 0 || a.Entry.State != "held") {
		c.odd.add(fmt.Errorf(
			"client %d: POST /locks/%s: 201 without an entry that is held: %v", c.Number, r.Lock, a,
		))
	}
	return a
}

// Acquire asks for the lock until there is an answer, or the attempts are used
// up, and records the whole as one operation. The hold is nil unless granted.
func (c *Client) Acquire(ctx context.Context, r Request) (*Hold, history.Outcome) {
	op := history.Op{
		Client: c.Number, Lock: r.Lock, Kind: history.Acquire, TTL: r.TTL, Call: c.history.Now(),
	}
	h, a := c.acquire(ctx, r, &op)
	op.Return = a.Return
	op.Outcome, _ = a.outcome()
	op.Reason = a.Problem.Reason
	if h != nil {
		op.Entry, op.Fence, op.Until = h.ID, h.Fence, a.Until
	}
	if !a.harmless() {
		c.history.Add(op)
	}
	return h, op.Outcome
}

func (c *Client) acquire(ctx context.Context, r Request, op *history.Op) (*Hold, Answer) {
	var a Answer
	pending := false
	for attempt := range max(r.Attempts, 1) {
		if attempt > 0 && store.Pause(ctx, 20*time.Millisecond) != nil {
			break
		}
		a = c.Post(ctx, r.Replica+attempt, r)
		if a.Entry.ID != "" {
			op.Entry = a.Entry.ID
		}
		if a.Status == http.StatusCreated {
			return hold(r, a), a
		}
		pending = pending || !a.harmless()
		outcome, _ := a.outcome()
		if outcome != history.Unknown || pending && r.Key == "" {
			return nil, a
		}
	}
	if pending { // what the last attempt vouches for does not cover the earlier ones
		a.Status, a.Problem = 0, Problem{}
		a.Err = errors.New("an earlier attempt may have taken effect")
	}
	return nil, a
}

func hold(r Request, a Answer) *Hold {
	return &Hold{
		Lock: r.Lock, ID: a.Entry.ID, token: a.Entry.Token, Fence: a.Entry.Fence, TTL: r.TTL,
		Until: a.Until,
	}
}

// HoldOf returns what an answer to r, 201 or 202, gives its client.
func HoldOf(r Request, a Answer) *Hold {
	h := hold(r, a)
	h.Waiting = a.waiting()
	return h
}

// Record adds an operation of this client about an entry to the history, for
// tests that make their attempts one by one.
func (c *Client) Record(kind history.Kind, h *Hold, a Answer) {
	outcome, _ := a.outcome()
	c.history.Add(history.Op{
		Client: c.Number, Lock: h.Lock, Kind: kind, Entry: h.ID, TTL: h.TTL, Fence: a.Entry.Fence,
		Call: a.Call, Return: a.Return, Until: a.Until, Outcome: outcome, Reason: a.Problem.Reason,
		Waiting: h.Waiting,
	})
}

// Ask makes one attempt at anything and records nothing.
func (c *Client) Ask(
	ctx context.Context,
	replica int,
	method, path string,
	header map[string]string,
	body any,
	wait time.Duration,
) Answer {
	return c.send(ctx, replica, method, path, header, body, wait)
}

// Put makes one attempt to renew and records nothing.
func (c *Client) Put(ctx context.Context, replica int, h *Hold) Answer {
	return c.send(ctx, replica, http.MethodPut, h.path()+"/renew", h.header(), nil, 0)
}

// Delete makes one attempt to release and records nothing.
func (c *Client) Delete(ctx context.Context, replica int, h *Hold) Answer {
	return c.send(ctx, replica, http.MethodDelete, h.path(), h.header(), nil, 0)
}

func (h *Hold) header() map[string]string { return map[string]string{"Lock-Token": h.token} }

// SameGrant reports whether two holds are one: entry, token and fence.
func (h *Hold) SameGrant(other *Hold) bool {
	return h.Lock == other.Lock && h.ID == other.ID && h.token == other.token && h.Fence == other.Fence
}

// Renew makes one attempt and records it.
func (c *Client) Renew(ctx context.Context, replica int, h *Hold) history.Outcome {
	a := c.Put(ctx, replica, h)
	outcome, _ := a.outcome()
	if !a.harmless() {
		c.Record(history.Renew, h, a)
	}
	return outcome
}

// Release makes up to attempts, going round the replicas, and records them as
// one operation. A 410 that says "released" after an attempt of unknown outcome
// is that attempt's success.
func (c *Client) Release(ctx context.Context, replica, attempts int, h *Hold) history.Outcome {
	first := c.history.Now()
	pending := false
	var a Answer
	for attempt := range attempts {
		if attempt > 0 && store.Pause(ctx, 20*time.Millisecond) != nil {
			break
		}
		a = c.Delete(ctx, replica+attempt, h)
		if outcome, _ := a.outcome(); outcome != history.Unknown {
			break
		}
		pending = pending || !a.harmless()
	}
	if a.harmless() && !pending {
		return history.Unknown
	}
	a.Call = first
	if pending && a.Status == http.StatusGone {
		a = settled(a)
	}
	c.Record(history.Release, h, a)
	outcome, _ := a.outcome()
	return outcome
}

// settled is what a 410 means to a client whose earlier attempt is open.
func settled(a Answer) Answer {
	switch a.Problem.Reason {
	case "released":
		a.Status = http.StatusNoContent
	case "expired":
	default:
		a.Status = 0 // gone, for an unknown reason
	}
	return a
}
