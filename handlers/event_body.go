package handlers

import (
	"bytes"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// eventFilter is what of the events a reader is told.
type eventFilter struct {
	types    []lock.EventKind // nil is all
	patterns []auth.Pattern   // of locks; nil is all
	reader   *auth.Principal
}

func (f *eventFilter) sees(name string) bool {
	if !f.reader.MayUse(name) {
		return false
	}
	return f.patterns == nil || slices.ContainsFunc(f.patterns, func(p auth.Pattern) bool { return p.Match(name) })
}

// message returns an event as the reader is told it, nil if it is not told. Of a set it
// is told the locks that it may see; most see all, for whom the text is made once.
func (f *eventFilter) message(r *events.Record) []byte {
	if f.types != nil && !slices.Contains(f.types, r.Kind) {
		return nil
	}
	seen := 0
	for _, c := range r.Entry.Claims {
		if f.sees(c.Name) {
			seen++
		}
	}
	switch seen {
	case 0:
		return nil
	case len(r.Entry.Claims):
		return r.Text(func(e *lock.Event) []byte { return eventMessage(e, e.Entry.Claims) })
	}
	hidden := func(c lock.Claim) bool { return !f.sees(c.Name) }
	return eventMessage(&r.Event, slices.DeleteFunc(slices.Clone(r.Entry.Claims), hidden))
}

func eventMessage(e *lock.Event, claims []lock.Claim) []byte {
	return message(e.ID, &api.Event{Type: string(e.Kind), Timestamp: api.InstantOf(e.At), Data: eventData(e, claims)})
}

// missedMessage says what a reader was not told.
func missedMessage(m *events.Missed, now time.Time) []byte {
	return message(m.Before, &api.Event{Type: api.EventsMissed, Timestamp: api.InstantOf(now), Data: api.EventData{
		Number: m.Before.Number, After: m.After.String(), Before: m.Before.String(),
	}})
}

// message is an event of an event stream, as HTML's standard has it. JSON has no line
// break.
func message(id lock.EventID, e *api.Event) []byte {
	var text bytes.Buffer
	text.WriteString("id: " + id.String() + "\nevent: " + e.Type + "\ndata: ")
	if err := api.Encode(&text, e); err != nil {
		return nil // nothing in it can fail to be JSON
	}
	text.WriteString("\n\n")
	return bytes.Clone(text.Bytes())
}

// eventData describes an event with the claims that its reader may see. What is secret of an
// entry, or nobody's concern, is left out by naming what is not.
func eventData(e *lock.Event, claims []lock.Claim) api.EventData {
	of := e.Entry
	d := api.EventData{Number: e.ID.Number, Tenant: of.Tenant, Reason: string(e.Reason)}
	entry := &api.EventEntry{
		ID: string(of.ID), Holder: of.Holder, TTLSeconds: api.SecondsOf(of.TTL),
		EnqueuedAt: api.InstantOf(of.EnqueuedAt), Metadata: of.Metadata,
	}
	d.Entry = entry
	if of.Set {
		for _, c := range claims {
			d.Locks = append(d.Locks, c.Name)
			entry.Locks = append(entry.Locks, api.SetLock{Name: c.Name, Mode: string(c.Mode), Limit: c.Limit})
		}
	} else {
		d.Lock, entry.Mode, entry.Limit = of.Name(), string(claims[0].Mode), claims[0].Limit
	}
	if e.Held {
		entry.Fence = of.Number
	}
	lasted := api.SecondsOf(max(0, e.Lasted))
	switch {
	case e.Kind == lock.EventAcquired:
		d.WaitedSeconds = &lasted
	case e.Kind != lock.EventEnqueued:
		if d.Held = &e.Held; e.Held {
			d.HeldSeconds = &lasted
		}
	}
	return d
}
