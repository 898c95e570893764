package handlers

import (
	"math"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// AcquireBody is what a client may say about the acquire that it asks for. Every
// field is optional.
type AcquireBody struct {
	// Mode of the lock: alone, readers together, or up to limit at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many may hold at once. All who use the lock at a
	// time say the same.
	Limit *whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
	Terms
}

// LockSetBody is what a client says about the set of locks that it asks for.
type LockSetBody struct {
	// Locks that are taken together, in any order, each once.
	Locks []SetClaim `json:"locks"`
	Terms
}

// SetClaim is one lock of a set that is asked for.
type SetClaim struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode of the lock: alone, readers together, or up to limit at once.
	Mode *string `json:"mode,omitempty" enums:"exclusive,shared,semaphore" default:"exclusive"`
	// Limit of a semaphore: how many may hold at once. All who use the lock at a
	// time say the same.
	Limit *whole `json:"limit,omitempty" swaggertype:"integer" minimum:"1" maximum:"1000000"`
}

// Terms are what every acquire can say.
type Terms struct {
	// TTLSeconds is the lease, up to the configured maximum, 3600 by default. Like all
	// durations it is rounded up to the millisecond.
	TTLSeconds *decimal `json:"ttl_seconds,omitempty" swaggertype:"number" example:"30" default:"30" minimum:"2" maximum:"604800"`
	// WaitSeconds is how long to stay in the queue at most; 0 is not to queue.
	WaitSeconds *decimal `json:"wait_seconds,omitempty" swaggertype:"number" example:"20" default:"0" minimum:"0" maximum:"86400"`
	// Holder is which worker this is, for people to see; the bearer token's sub by
	// default. Deadlocks and the order of locks are looked for among workers that are
	// named here.
	Holder *string `json:"holder,omitempty" example:"worker-7" minLength:"1" maxLength:"200"`
	// Metadata are up to 16 pairs of strings, 2 KiB in all.
	Metadata map[string]*string `json:"metadata,omitempty" swaggertype:"object,string" example:"job:nightly"`
}

// entryFields are what held and waiting entries have in common.
type entryFields struct {
	// ID of the entry, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode in which the entry shares the lock.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	grantFields
}

// grantFields are what entries and sets have in common.
type grantFields struct {
	// Holder is the worker that asked.
	Holder string `json:"holder" example:"worker-7"`
	// Token proves that it is yours. Send it as Lock-Token.
	Token string `json:"token"`
	// TTLSeconds is how long the lease lasts each time.
	TTLSeconds seconds `json:"ttl_seconds" swaggertype:"number" example:"30"`
	// ExpiresAt is until when the lease is sure to last unless it is renewed.
	ExpiresAt instant `json:"expires_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// EnqueuedAt is when it joined the queue, or all its queues.
	EnqueuedAt instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Entry is one acquisition of a lock. Its state says which of the two it is.
type Entry struct {
	Held    *HeldEntry
	Waiting *WaitingEntry
}

// MarshalJSON writes the one that there is.
func (e *Entry) MarshalJSON() ([]byte, error) {
	if e.Held != nil {
		return plainJSON(e.Held)
	}
	return plainJSON(e.Waiting)
}

// HeldEntry is an acquisition that holds its lock.
type HeldEntry struct {
	entryFields
	// State of the entry.
	State string `json:"state" enums:"held" example:"held"`
	// Fence grows from each grant of the lock to the next, for ever; below 2^53.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// WaitedSeconds is how long the grant took.
	WaitedSeconds seconds `json:"waited_seconds" swaggertype:"number" minimum:"0" example:"0.25"`
}

// WaitingEntry is an acquisition that stands in its lock's queue.
type WaitingEntry struct {
	entryFields
	// State of the entry.
	State string `json:"state" enums:"waiting" example:"waiting"`
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"3"`
}

// Holder is somebody who holds a lock.
type Holder struct {
	// Holder is the worker that asked.
	Holder string `json:"holder" example:"worker-7"`
	// Since when the lock is held.
	Since instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// ExpiresAt is when the lease ends unless it is renewed; left out where the
	// store was not asked.
	ExpiresAt *instant `json:"expires_at,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:35.000Z"`
	// Fence of the grant.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Mode in which the lock is held.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Metadata as they were sent; left out of lists, and of the refusal of a set.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Waiter is somebody who waits for a lock.
type Waiter struct {
	// Position in the queue, 1 is next.
	Position int `json:"position" minimum:"1" example:"1"`
	// Holder is the worker that asked.
	Holder string `json:"holder" example:"worker-8"`
	// Mode that is waited for.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// EnqueuedAt is when the entry joined the queue.
	EnqueuedAt instant `json:"enqueued_at" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// WaitedSeconds is how long that was ago.
	WaitedSeconds seconds `json:"waited_seconds" swaggertype:"number" example:"1.5"`
	// Metadata as they were sent.
	Metadata map[string]string `json:"metadata,omitempty" example:"job:nightly"`
}

// Percentiles of the latest samples, in seconds.
type Percentiles struct {
	// P50 is what half of them stayed below.
	P50 seconds `json:"p50" swaggertype:"number" example:"0.2"`
	// P90 is what nine in ten stayed below.
	P90 seconds `json:"p90" swaggertype:"number" example:"1.1"`
	// P99 is what all but one in a hundred stayed below.
	P99 seconds `json:"p99" swaggertype:"number" example:"4.5"`
}

// Figures tell how a lock was used, as the answering replica saw it since it
// started.
type Figures struct {
	// Acquisitions counts the grants.
	Acquisitions uint64 `json:"acquisitions" format:"int64" minimum:"0" example:"1042"`
	// Expirations counts the leases that ended without a release.
	Expirations uint64 `json:"expirations" format:"int64" minimum:"0" example:"2"`
	// WaitSeconds is how long the grants took; left out before the first.
	WaitSeconds *Percentiles `json:"wait_seconds,omitempty"`
	// HoldSeconds is how long the lock was held; left out before the first end.
	HoldSeconds *Percentiles `json:"hold_seconds,omitempty"`
	// RecommendedTTLSeconds is twice the hold time that one in a hundred exceeds;
	// left out before ten acquisitions.
	RecommendedTTLSeconds *seconds `json:"recommended_ttl_seconds,omitempty" swaggertype:"number" example:"9"`
}

// Lock is one lock with everybody at it.
type Lock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holders, the longest holding first, at most 100 of them.
	Holders []Holder `json:"holders"`
	// Waiters in order, at most 1000 of them.
	Waiters []Waiter `json:"waiters"`
	// Waiting is how many wait in all.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// Fence is the newest that was handed out, as far as this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
	// Figures of this replica.
	Figures Figures `json:"figures"`
	// Revision up to which the answer is complete.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1050"`
}

// LockSummary is a lock in a list.
type LockSummary struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// State is contended if somebody waits for the lock.
	State string `json:"state" enums:"held,contended"`
	// Holders, the longest holding first, at most 100 of them, without their metadata.
	Holders []Holder `json:"holders"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
	// Fence is the newest that was handed out, as far as this replica knows.
	Fence uint64 `json:"fence,omitempty" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
}

// LockPage is a page of locks in byte order of their names.
type LockPage struct {
	// Locks of the page.
	Locks []LockSummary `json:"locks"`
	// NextCursor asks for the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6b3JkZXJzOjQy"`
	// Revision up to which the answer is complete.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1050"`
}

// Health tells how the process is.
type Health struct {
	// Status in a word.
	Status string `json:"status" enums:"ok,ready"`
}

// instant is a time in RFC 3339, UTC, with milliseconds.
type instant string

func instantOf(t time.Time) instant {
	return instant(t.UTC().AppendFormat(make([]byte, 0, 24), "2006-01-02T15:04:05.000Z"))
}

// seconds is a duration in seconds with three decimals.
type seconds float64

func inSeconds(d time.Duration) seconds {
	return seconds(math.Round(d.Seconds()*1000) / 1000)
}

// entryOf describes an entry of one lock.
func entryOf(g *service.Grant) *Entry {
	e := g.Entry
	fields := entryFields{
		ID: string(e.ID), Name: e.Name(), Mode: string(e.Claims[0].Mode), Limit: e.Claims[0].Limit, grantFields: fieldsOf(g),
	}
	if g.Held {
		return &Entry{Held: &HeldEntry{entryFields: fields, State: "held", Fence: e.Number, WaitedSeconds: inSeconds(g.Waited)}}
	}
	return &Entry{Waiting: &WaitingEntry{entryFields: fields, State: "waiting", Position: max(1, g.Position)}}
}

func fieldsOf(g *service.Grant) grantFields {
	e := g.Entry
	return grantFields{
		Holder: e.Holder, Token: g.Token, TTLSeconds: inSeconds(e.TTL),
		ExpiresAt: instantOf(g.ExpiresAt), EnqueuedAt: instantOf(e.EnqueuedAt), Metadata: e.Metadata,
	}
}

// briefly describes holders without their metadata.
func briefly(holders []service.Holder, name string) []Holder {
	out := holdersOf(holders, name)
	for i := range out {
		out[i].Metadata = nil
	}
	return out
}

// holdersOf describes those who hold the lock with the name.
func holdersOf(holders []service.Holder, name string) []Holder {
	out := make([]Holder, 0, len(holders))
	for _, h := range holders {
		claim := claimOn(h.Entry, name)
		v := Holder{
			Holder: h.Entry.Holder, Since: instantOf(h.Since), Fence: h.Entry.Number,
			Mode: string(claim.Mode), Limit: claim.Limit, Metadata: h.Entry.Metadata,
		}
		if !h.ExpiresAt.IsZero() {
			at := instantOf(h.ExpiresAt)
			v.ExpiresAt = &at
		}
		out = append(out, v)
	}
	return out
}

func claimOn(e *lock.Entry, name string) lock.Claim {
	for _, c := range e.Claims {
		if c.Name == name {
			return c
		}
	}
	return e.Claims[0]
}

func lockOf(v *service.LockView) *Lock {
	out := &Lock{
		Name: v.Name, Holders: holdersOf(v.Holders, v.Name), Waiters: make([]Waiter, 0, len(v.Waiters)),
		Waiting: v.Waiting, Fence: v.Newest, Revision: v.Revision,
		Figures: Figures{
			Acquisitions: v.Figures.Acquisitions, Expirations: v.Figures.Expirations,
			WaitSeconds: percentilesOf(v.Figures.Wait), HoldSeconds: percentilesOf(v.Figures.Hold),
		},
	}
	for _, w := range v.Waiters {
		claim := claimOn(w.Entry, v.Name)
		out.Waiters = append(out.Waiters, Waiter{
			Position: w.Position, Holder: w.Entry.Holder, Mode: string(claim.Mode), Limit: claim.Limit,
			EnqueuedAt: instantOf(w.Entry.EnqueuedAt), WaitedSeconds: inSeconds(w.Waited), Metadata: w.Entry.Metadata,
		})
	}
	if v.Advised > 0 {
		ttl := inSeconds(v.Advised)
		out.Figures.RecommendedTTLSeconds = &ttl
	}
	return out
}

// percentilesOf is nil without samples: a 0 would say that all were quick.
func percentilesOf(p service.Percentiles) *Percentiles {
	if p.Samples == 0 {
		return nil
	}
	return &Percentiles{P50: inSeconds(p.P50), P90: inSeconds(p.P90), P99: inSeconds(p.P99)}
}

func pageOf(p *service.Page) *LockPage {
	out := &LockPage{Locks: make([]LockSummary, 0, len(p.Locks)), Revision: p.Revision}
	if p.Next != "" {
		out.NextCursor = encodeCursor(p.Next)
	}
	for _, l := range p.Locks {
		s := LockSummary{Name: l.Name, State: "held", Holders: briefly(l.Holders, l.Name), Waiting: l.Waiting, Fence: l.Newest}
		if l.Waiting > 0 {
			s.State = "contended"
		}
		out.Locks = append(out.Locks, s)
	}
	return out
}
