package store

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// MaxPast is how many bytes are remembered of an entry that ended, beside why it did. An
// entry that has more, a set of many locks, is remembered by its id and place alone: ends
// stay for minutes, at thousands a second.
const MaxPast = 1 << 10

// Past is what may be told of an entry that ended: its locks, holder, number and times;
// not its metadata, which would make it several times as large, nor anything that is for
// its client alone. It stays encoded, as it is rarely looked at.
type Past struct {
	Text  json.RawMessage
	Floor uint64 // to be added to its position
}

type past struct {
	Lock     string       `json:"lock,omitempty"` // of an entry with one claim
	Mode     lock.Mode    `json:"mode,omitempty"` // likewise; "" is exclusive
	Limit    int          `json:"limit,omitempty"`
	Claims   []ValueClaim `json:"claims,omitempty"` // of a set
	Holder   string       `json:"holder,omitempty"`
	Named    bool         `json:"named,omitempty"`
	Subject  string       `json:"subject,omitempty"`
	TTL      int64        `json:"ttl_ms,omitempty"`
	Enqueued int64        `json:"enqueued_ms,omitempty"`
	Until    int64        `json:"wait_until_ms,omitempty"`
	Position int64        `json:"position"` // its number without the fence floor
}

// PlaceOf returns what is remembered of an entry of which nothing is to be told: where it
// was written. So its end is not taken for that of another entry of its key.
func PlaceOf(position int64) json.RawMessage { return Encode(past{Position: position}) }

// pastOf returns what is remembered of e, which was written at the position; [PlaceOf] it
// if that is more than [MaxPast], nil if nothing is known of it.
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
		for _, c := range e.Claims {
			p.Claims = append(p.Claims, ValueClaim(c))
		}
	} else {
		p.Lock, p.Mode, p.Limit = e.Name(), e.Claims[0].Mode, e.Claims[0].Limit
	}
	if p.Mode == lock.Exclusive {
		p.Mode = ""
	}
	if text := Encode(p); len(text) <= MaxPast {
		return text
	}
	return PlaceOf(position)
}

// Position returns where the entry was written, 0 if that is not remembered.
func (p Past) Position() int64 {
	var was past
	if len(p.Text) == 0 || json.Unmarshal(p.Text, &was) != nil {
		return 0
	}
	return was.Position
}

// Entry returns the entry with the id as far as it is remembered; nil if nothing is.
func (p Past) Entry(tenant string, id lock.ID) *lock.Entry {
	var was past
	if len(p.Text) == 0 || json.Unmarshal(p.Text, &was) != nil {
		return nil
	}
	if was.Mode == "" && was.Lock != "" {
		was.Mode = lock.Exclusive
	}
	e := &lock.Entry{
		ID: id, Tenant: tenant, Claims: was.claims(), Set: len(was.Claims) > 0,
		Holder: was.Holder, Named: was.Named, Subject: was.Subject,
		TTL:        time.Duration(was.TTL) * time.Millisecond,
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
	if len(p.Claims) == 0 {
		return []lock.Claim{{Name: p.Lock, Mode: p.Mode, Limit: p.Limit}}
	}
	claims := make([]lock.Claim, len(p.Claims))
	for i, c := range p.Claims {
		claims[i] = lock.Claim(c)
	}
	return claims
}

// pastBudget is how many bytes of what entries were are remembered of one tenant's ends in
// each pastSpan, at a replica: of a thousand typical ones a second. In the minutes for
// which ends stay that comes to 105 MiB.
const (
	pastBudget = 8 << 20
	pastSpan   = time.Minute
)

// Pasts gives out what is remembered of entries that end, as long as their tenant has not
// had too much of it: a store may keep all of that in memory. The zero value is ready.
type Pasts struct {
	mu    sync.Mutex
	since time.Time
	spent map[string]int // bytes, by tenant
}

// Of returns what is remembered of e, which was written at the position: [PlaceOf] it if
// that is more than [MaxPast], or its tenant has used up its bytes for now; nil if nothing
// is known of it.
func (p *Pasts) Of(e *lock.Entry, position int64) json.RawMessage {
	text := pastOf(e, position)
	if text != nil && !p.spend(e.Tenant, len(text)) {
		return PlaceOf(position)
	}
	return text
}

// SaysAll reports whether what is remembered of e, if nothing of that was cut, is all that a
// store keeps of it.
func SaysAll(e *lock.Entry) bool {
	return len(e.Metadata) == 0 && !e.Async && e.Callback == nil && e.AskWithin == nil &&
		e.Trace == "" &&
		e.Request == "" && e.Handle == 0 && !e.Opaque
}

// IsPlace reports whether only the place of an entry is remembered, see [PlaceOf].
func IsPlace(text json.RawMessage) bool { return bytes.HasPrefix(text, []byte(`{"position"`)) }

// Note returns how a note on an end of the tenant's is stored: not at all if the tenant has
// used up its bytes for now.
func (p *Pasts) Note(tenant string, n *lock.Note) *ValueNote {
	if n == nil || !p.spend(tenant, len(n.By)+len(n.Reason)) {
		return nil
	}
	return (*ValueNote)(n)
}

// spend reports whether the tenant may have so many bytes more.
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
