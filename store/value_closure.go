package store

import (
	"errors"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// ValueClosing is a [lock.Closing].
type ValueClosing struct {
	Locks  string `json:"locks"`
	Until  int64  `json:"until_ms"`
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// ValueRoll is a [lock.Roll].
type ValueRoll struct {
	Of    lock.ID               `json:"of"`
	Seats map[string]ValueSeats `json:"seats,omitempty"`
}

// ValueSeats are [lock.Seats].
type ValueSeats struct {
	Last uint64   `json:"last,omitempty"`
	But  []uint64 `json:"but,omitempty"`
}

func closingOf(c *lock.Closing) *ValueClosing {
	if c == nil {
		return nil
	}
	return &ValueClosing{c.Locks.String(), c.Until.UnixMilli(), c.Reason, c.By}
}

func rollOf(r *lock.Roll) *ValueRoll {
	if r == nil {
		return nil
	}
	v := &ValueRoll{r.Of, map[string]ValueSeats{}}
	for name, s := range r.Seats {
		v.Seats[name] = ValueSeats(s)
	}
	return v
}

func (v *ValueClosing) closing() *lock.Closing {
	if v == nil {
		return nil
	}
	locks, _ := lock.ParsePattern(v.Locks) // what is none selects nothing, and does not pass Check
	return &lock.Closing{Locks: locks, Until: time.UnixMilli(v.Until).UTC(), Reason: v.Reason, By: v.By}
}

func (v *ValueRoll) roll() *lock.Roll {
	if v == nil {
		return nil
	}
	r := &lock.Roll{Of: v.Of, Seats: map[string]lock.Seats{}}
	for name, s := range v.Seats {
		r.Seats[name] = lock.Seats(s)
	}
	return r
}

// checkClosure returns what is wrong with the parts of a closure. They stand in queues of
// their own, and nothing else does there.
func (v *Value) checkClosure(key Key) error {
	tenant, in := strings.CutPrefix(key.Lock, lock.ClosuresOf("").Name)
	in = in && key.Tenant == lock.OwnTenant
	switch {
	case !in && v.Closing == nil && v.Roll == nil:
		return nil
	case !in || !lock.ValidTenant(tenant) || v.Form < formClosing || (v.Closing == nil) == (v.Roll == nil):
		return errors.New("a closure out of its place")
	case v.Closing != nil:
		return v.Closing.closing().Check()
	}
	return v.Roll.roll().Check()
}
