package lock

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// EventKind is what happened to an entry, as clients see it.
type EventKind string

// The kinds of events. Each entry has at most one of each. EventEnqueued comes first, then
// EventReleaseRequested, then EventAcquired, then one of the ends.
const (
	EventEnqueued EventKind = "lock.enqueued" // it has to wait
	EventAcquired EventKind = "lock.acquired" // it holds
	// by its client, or removed by a replica; see Reason
	EventReleased EventKind = "lock.released"
	EventExpired  EventKind = "lock.expired" // its client did not renew its lease
	EventRevoked  EventKind = "lock.revoked" // by an operator
	// it waited up to its limit
	EventWaitTimeout EventKind = "lock.wait_timeout"
	// removed because it closed a cycle of waits
	EventDeadlockRefused EventKind = "lock.deadlock_refused"
	// only the newest was to wait, and a later entry joined
	EventSuperseded EventKind = "lock.superseded"

	// it waits, and asks the holders to finish
	EventReleaseRequested EventKind = "lock.release_requested"
)

// EventKinds returns all kinds of events.
func EventKinds() []EventKind {
	return []EventKind{
		EventEnqueued, EventAcquired, EventReleased, EventExpired, EventRevoked, EventWaitTimeout,
		EventDeadlockRefused, EventSuperseded, EventReleaseRequested,
	}
}

// EventKindNames lists all kinds of events, for the error about an unknown one.
func EventKindNames() string {
	var names []string
	for _, kind := range EventKinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// Event is something that happened to an entry. What happened and its ID are a function of the
// store's history, so they are the same at every replica. At and Lasted are what one replica saw.
type Event struct {
	ID     EventID
	Kind   EventKind
	Entry  *Entry
	Reason Reason // of an end
	Held   bool   // it holds, or held until its end
	Note   *Note  // of an end that an operator caused; nil without a note
	Ask    *Ask   // of [EventReleaseRequested]

	At     time.Time
	Lasted time.Duration // how long it waited for its grant; at an end, how long it held
}

// EventID names an event: the number of the write that caused it, and its index among that
// write's events, from 1 on. Index 0 is the position before the first event.
type EventID struct {
	Number uint64
	Index  uint32
}

// Before returns the position before the first event of a write.
func Before(number uint64) EventID { return EventID{Number: number} }

// Compare returns which of two comes first, as [cmp.Compare] does.
func (id EventID) Compare(other EventID) int {
	return cmp.Or(cmp.Compare(id.Number, other.Number), cmp.Compare(id.Index, other.Index))
}

// Later returns the later of two ids.
func (id EventID) Later(other EventID) EventID {
	if id.Compare(other) > 0 {
		return id
	}
	return other
}

// String returns the id as <number>-<index>.
func (id EventID) String() string {
	return strconv.FormatUint(id.Number, 10) + "-" + strconv.FormatUint(uint64(id.Index), 10)
}

// maxEventID is the length of the longest id.
const maxEventID = len("9007199254740991-4294967295")

// MaxNumber is the greatest number of a store, and so the greatest fence: the greatest integer
// that every JSON reader reads exactly.
const MaxNumber = 1<<53 - 1

// ParseEventID reads what [EventID.String] writes, and nothing else.
func ParseEventID(text string) (id EventID, err error) {
	number, index, ok := strings.Cut(text, "-")
	if !ok || len(text) > maxEventID {
		return EventID{}, fmt.Errorf("an event id is <number>-<index>")
	}
	n, errNumber := strconv.ParseUint(number, 10, 64)
	i, errIndex := strconv.ParseUint(index, 10, 32)
	id = EventID{Number: n, Index: uint32(i)}
	if errNumber != nil || errIndex != nil || n > MaxNumber || id.String() != text {
		return EventID{}, fmt.Errorf("an event id is <number>-<index>")
	}
	return id, nil
}

// EventOfJoin returns the event of an entry that joined its queues. A try that has to wait makes
// no event: it leaves at once, and no client learns of it.
func EventOfJoin(e *Entry, holds bool) (Event, bool) {
	switch {
	case holds:
		return Event{Kind: EventAcquired, Entry: e, Held: true}, true
	case e.Tries():
		return Event{}, false
	}
	return Event{Kind: EventEnqueued, Entry: e}, true
}

// EventOfGrant returns the event of a waiting entry's grant.
func EventOfGrant(e *Entry) Event { return Event{Kind: EventAcquired, Entry: e, Held: true} }

// EventOfEnd returns the event of an entry's end. why is the store's reason. rejected is why the
// entry could not stay, or "": a replica that removes such an entry may record only that it did.
// A try that was removed while it waited makes no event, because no client learned of it.
func EventOfEnd(e *Entry, held bool, why, rejected Reason) (Event, bool) {
	if why == Withdrawn && !held {
		if e.Tries() {
			return Event{}, false
		}
		why = cmp.Or(rejected, why)
	}
	return Event{Kind: eventOfReason(why), Entry: e, Reason: why, Held: held}, true
}

func eventOfReason(why Reason) EventKind {
	switch why {
	case Expired:
		return EventExpired
	case Revoked:
		return EventRevoked
	case WaitTimeout:
		return EventWaitTimeout
	case Deadlocked:
		return EventDeadlockRefused
	case Superseded:
		return EventSuperseded
	default:
		return EventReleased
	}
}
