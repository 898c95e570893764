package lock

import "time"

// Ask is a waiting entry's request that the holders finish by an instant, if they can. Nothing
// happens at that instant.
type Ask struct {
	Since  time.Time     // when the entry joined, by the clock of the replica that wrote it
	Within time.Duration // counted from Since; 0 means as soon as possible
}

// MaxAskWithin is the longest time that an entry may give its holders.
const MaxAskWithin = 24 * time.Hour

// Wished returns the instant by which the entry asks its holders to finish.
func (a Ask) Wished() time.Time { return a.Since.Add(a.Within) }

// Asks returns what the entry asked of its holders; ok is false if it asked nothing.
func (e *Entry) Asks() (a Ask, ok bool) {
	if e.AskWithin == nil || e.Tries() {
		return Ask{}, false
	}
	return Ask{Since: e.EnqueuedAt, Within: *e.AskWithin}, true
}

// EventOfAsk returns the event of an entry that waits and asks its holders to finish. It covers
// the locks for which the entry waits.
func EventOfAsk(e *Entry, a Ask, waits []Claim) Event {
	if len(waits) < len(e.Claims) {
		part := *e
		part.Claims = waits
		e = &part
	}
	return Event{Kind: EventReleaseRequested, Entry: e, Ask: &a}
}

// WaitsFor returns the claims of an entry for which it is behind the front.
func (m *Member) WaitsFor() []Claim {
	var waits []Claim
	for i := range m.slots {
		if !m.slots[i].inFront {
			waits = append(waits, m.slots[i].claim)
		}
	}
	return waits
}
