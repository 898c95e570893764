// Package history records the answers to clients of a lock service, and the history of its store,
// and checks both: the first with porcupine against a model of a fenced lock, the second by the
// order of the store's revisions.
//
// All times are read from one monotonic clock, the [Recorder]'s, so the clients and the observer
// of the store must live in one process.
package history

import (
	"fmt"
	"sync"
	"time"
)

// Kind is what a client asked for.
type Kind string

// The kinds of operations.
const (
	Acquire Kind = "acquire" // from the first attempt to the answer that ended it
	Renew   Kind = "renew"
	Release Kind = "release"
	Remove  Kind = "remove" // the test itself took the entry out of the store
)

// Outcome is what the client knows afterwards.
type Outcome string

// The outcomes of operations.
const (
	OK      Outcome = "ok"      // granted, renewed, released
	Lost    Outcome = "lost"    // the entry is gone, says the server
	Refused Outcome = "refused" // not granted in time; the entry, if any, is gone
	Unknown Outcome = "unknown" // no answer, or one that says so
)

// Op is one operation of one client on one lock. Several attempts at the same
// thing, after lost answers, are one Op, from the first call to the last return.
type Op struct {
	Client  int
	Lock    string
	Kind    Kind
	Entry   string        // the entry's id; "" if the client never learned it
	TTL     time.Duration // of the entry's lease
	Call    time.Duration // when the first attempt was sent
	Return  time.Duration // when the last attempt ended
	Outcome Outcome
	Until   time.Duration // when the lease ends at the earliest, says the answer; 0 if it says nothing
	Fence   int64         // of a grant
	Reason  string        // of Lost
	Waiting bool          // as far as the client knows the entry was never granted
}

// String describes the operation on one line.
func (o Op) String() string {
	s := fmt.Sprintf("[%v – %v] client %d: %s %s", o.Call, o.Return, o.Client, o.Kind, o.Lock)
	if o.Entry != "" {
		s += " entry " + o.Entry
	}
	s += " → " + string(o.Outcome)
	if o.Kind == Acquire && o.Outcome == OK {
		s += fmt.Sprintf(", fence %d, TTL %v", o.Fence, o.TTL)
	}
	if o.Until != 0 {
		s += fmt.Sprintf(", until %v", o.Until)
	}
	if o.Reason != "" {
		s += ", " + o.Reason
	}
	return s
}

// Recorder collects operations from many goroutines, and is their clock.
type Recorder struct {
	origin time.Time

	mu  sync.Mutex
	ops []Op
}

// NewRecorder returns an empty recorder whose clock starts now.
func NewRecorder() *Recorder { return &Recorder{origin: time.Now()} }

// Now is the time since the recorder was made, by the monotonic clock.
func (r *Recorder) Now() time.Duration { return time.Since(r.origin) }

// Add records an operation that has ended.
func (r *Recorder) Add(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Ops returns a copy of what was recorded so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Op(nil), r.ops...)
}
