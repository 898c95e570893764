package store

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// MaxPast bounds the bytes kept of an ended entry, besides its reason. For a larger entry, a set
// of many locks, only its id and position are kept, because ends stay for minutes, at thousands a
// second.
const MaxPast = 1 << 10

// Past is what the server may report about an ended entry: its locks, holder, number and times.
// It leaves out the metadata, which would make it several times larger, and everything that is
// for its client alone. It stays encoded because it is rarely read.
type Past struct {
	Text  json.RawMessage
	Floor uint64 // added to its position
}

type past struct {
	Lock     string       `json:"lock,omitempty"` // of an entry with one claim
	Mode     lock.Mode    `json:"mode,omitempty"` // the same; "" is exclusive
	Limit    int          `json:"limit,omitempty"`
	Permits  int          `json:"permits,omitempty"`
	Claims   []ValueClaim `json:"claims,omitempty"` // of a set
	Holder   string       `json:"holder,omitempty"`
	Named    bool         `json:"named,omitempty"`
	Subject  string       `json:"subject,omitempty"`
	TTL      int64        `json:"ttl_ms,omitempty"`
	Enqueued int64        `json:"enqueued_ms,omitempty"`
	Until    int64        `json:"wait_until_ms,omitempty"`
	Position int64        `json:"position"` // its number without the fence floor
}

// PlaceOf returns the record of an entry that keeps only the position. With it, readers do not
// take the end for that of another entry of its key.
func PlaceOf(position int64) json.RawMessage { return Encode(past{Position: position}) }

// pastOf returns the record of e, which was written at the position. It is only [PlaceOf] if the
// record exceeds [MaxPast], and nil if nothing is known of e.
func pastOf(e *lock.Entry, position int64) json.RawMessage {
	if e.Opaque {
		return nil
	}
	p := past{
		Holder: e.Holder, Named: e.Named, Subject: e.Subject, TTL: e.TTL.Milliseconds(),
		Enqueued: e.EnqueuedAt.UnixMilli(), Position: position,
	}
	if !e.WaitUntil.IsZero() {
		p.Until = e.WaitUntil.UnixMilli()
	}
	if e.Set {
		p.Claims = valueClaims(e.Claims)
	} else {
		c := valueClaim(e.Claims[0])
		p.Lock, p.Mode, p.Limit, p.Permits = c.Name, c.Mode, c.Limit, c.Permits
	}
	if p.Mode == lock.Exclusive {
		p.Mode = ""
	}
	if text := Encode(p); len(text) <= MaxPast {
		return text
	}
	return PlaceOf(position)
}

// Position returns the position of the entry, 0 if it is not recorded.
func (p Past) Position() int64 {
	var was past
	if len(p.Text) == 0 || json.Unmarshal(p.Text, &was) != nil {
		return 0
	}
	return was.Position
}

// Entry returns the entry with the id as far as it is recorded, or nil.
func (p Past) Entry(tenant string, id lock.ID) *lock.Entry {
	var was past
	if len(p.Text) == 0 || json.Unmarshal(p.Text, &was) != nil {
		return nil
	}
	if was.Mode == "" && was.Lock != "" {
		was.Mode = lock.Exclusive
	}
	e := &lock.Entry{
		ID: id, Tenant: tenant, Claims: was.claims(), Set: len(was.Claims) > 0, Holder: was.Holder,
		Named: was.Named, Subject: was.Subject, TTL: time.Duration(was.TTL) * time.Millisecond,
		EnqueuedAt: time.UnixMilli(was.Enqueued).UTC(), Number: uint64(was.Position) + p.Floor,
	}
	if was.Until != 0 {
		e.WaitUntil = time.UnixMilli(was.Until).UTC()
	}
	if lock.CheckClaims(e.Claims, e.Set) != nil || !lock.IsCanonical(e.Claims) {
		return nil
	}
	return e
}

func (p *past) claims() []lock.Claim {
	return claimsOf(p.Claims, ValueClaim{p.Lock, p.Mode, p.Limit, p.Permits})
}

// pastBudget bounds the bytes of entries' records that one replica keeps of one tenant's ends in
// each pastSpan: a thousand typical ones a second. Over the minutes for which ends stay, that is
// 105 MiB.
const (
	pastBudget = 8 << 20
	pastSpan   = time.Minute
)

// Pasts makes the records of ended entries, within a budget for each tenant, because a store may
// keep all of them in memory. The zero value is ready.
type Pasts struct {
	mu    sync.Mutex
	since time.Time
	spent map[string]int // bytes, by tenant
}

// Of returns the record of e, which was written at the position. It is only [PlaceOf] if the
// record exceeds [MaxPast] or its tenant has used up its budget, and nil if nothing is known of
// e.
func (p *Pasts) Of(e *lock.Entry, position int64) json.RawMessage {
	text := pastOf(e, position)
	if text != nil && !p.spend(e.Tenant, len(text)) {
		return PlaceOf(position)
	}
	return text
}

// Note returns the stored form of a note on an end of the tenant's entry, or nil if the tenant
// has used up its budget.
func (p *Pasts) Note(tenant string, n *lock.Note) *ValueNote {
	if n == nil || !p.spend(tenant, len(n.By)+len(n.Reason)) {
		return nil
	}
	return (*ValueNote)(n)
}

// spend reports whether the tenant's budget has that many bytes left, and takes them.
func (p *Pasts) spend(tenant string, bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.spent == nil || now.Sub(p.since) >= pastSpan {
		p.since, p.spent = now, map[string]int{}
	}
	if p.spent[tenant]+bytes > pastBudget {
		return false
	}
	p.spent[tenant] += bytes
	return true
}
