// Package event has the public form of what happened to entries, for event streams and
// by webhooks, in the same words.
package event

import (
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
)

// Of describes an event with the claims that its reader may see, at least one. Secrets of an
// entry stay out because each public field is named.
func Of(e *lock.Event, claims []lock.Claim) *api.Event {
	return &api.Event{
		ID: e.ID.String(), Type: string(e.Kind), Timestamp: api.InstantOf(e.At), Data: data(e, claims),
	}
}

// Missed returns the event that says that the events between two ids may be missing.
func Missed(after, before lock.EventID, now time.Time) *api.Event {
	data := api.EventData{
		Number: before.Number, After: after.String(), Before: before.String(),
	}
	return &api.Event{
		ID: before.String(), Type: api.EventsMissed, Timestamp: api.InstantOf(now), Data: data,
	}
}

func data(e *lock.Event, claims []lock.Claim) api.EventData {
	d := api.EventData{Number: e.ID.Number, Tenant: e.Entry.Tenant, Reason: string(e.Reason)}
	if !e.Entry.Set {
		d.Lock = e.Entry.Name()
	} else {
		for _, c := range claims {
			d.Locks = append(d.Locks, c.Name)
		}
	}
	d.Entry = entry(e, claims)
	lasting(&d, e)
	return d
}

// lasting adds what depends on what happened to the entry.
func lasting(d *api.EventData, e *lock.Event) {
	if e.Note != nil {
		d.Revoked = &api.EventRevoked{By: e.Note.By, Reason: e.Note.Reason}
	}
	lasted := api.SecondsOf(max(0, e.Lasted))
	switch {
	case e.Kind == lock.EventAcquired:
		d.WaitedSeconds = &lasted
	case e.Ask != nil:
		d.ReleaseRequested = &api.EventAsk{
			Since: api.InstantOf(e.Ask.Since), WithinSeconds: api.SecondsOf(e.Ask.Within),
			WishedAt: api.InstantOf(e.Ask.Wished()),
		}
	case e.Reason != "":
		if d.Held = &e.Held; e.Held {
			d.HeldSeconds = &lasted
		}
	}
}

// entry is the public part of an event's entry, for readers that may use its locks.
func entry(e *lock.Event, claims []lock.Claim) *api.EventEntry {
	of := e.Entry
	known := &api.EventEntry{
		ID: string(of.ID), Holder: of.Holder, TTLSeconds: api.SecondsOf(of.TTL),
		EnqueuedAt: api.InstantOf(of.EnqueuedAt), Metadata: of.Metadata, Any: of.Any,
	}
	if e.Held {
		known.Fence = of.Number
	}
	if !of.Set {
		c := claims[0]
		known.Mode, known.Limit, known.Permits = string(c.Mode), c.Limit, c.Permits
		return known
	}
	for _, c := range claims {
		known.Locks = append(known.Locks, api.SetLock{
			Name: c.Name, Mode: string(c.Mode), Limit: c.Limit, Permits: c.Permits,
		})
	}
	return known
}
