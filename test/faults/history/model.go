package history

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// freshEnough is how much of its TTL a waited grant may lack: the server renews
// the lease before the answer unless it did so less than this ago. What it says of
// the lease in its answer is held against the store, see [Truth].
const freshEnough = 250 * time.Millisecond

// state is one lock, as it may be at one moment. It is a value: two states that look the same are
// the same.
//
// No client sees an entry expire, so there is no such step. Instead the holder is kept until
// another operation shows that it is gone, which is legal only from deadline on.
type state struct {
	holder string        // the entry that holds the lock, or ""
	fence  int64         // the newest that was granted
	basis  time.Duration // of the holder: from when its TTL counts
	ttl    time.Duration // of the holder
	freed  time.Duration // no earlier than this did the lock become free
	gone   string        // entries that ended before they were granted: "id id "
}

// deadline is the moment before which the holder's lease cannot have ended.
func (s state) deadline() time.Duration { return s.basis + s.ttl }

// free returns the state without its holder.
func (s state) free(at time.Duration) state {
	s.holder, s.basis, s.ttl, s.freed = "", 0, 0, at
	return s
}

// without returns the state in which entry, which was not granted, has ended.
func (s state) without(entry string) state {
	if entry != "" && !s.isGone(entry) {
		s.gone += entry + " "
	}
	return s
}

func (s state) isGone(entry string) bool {
	return entry != "" && strings.Contains(" "+s.gone, " "+entry+" ")
}

// step returns the states in which the lock may be after op; none if op cannot
// happen in s. A time that is compared with a deadline is op's return: the
// latest moment at which op can have taken place.
func step(s state, op Op) []state {
	switch op.Kind {
	case Acquire:
		return acquire(s, op)
	case Renew:
		return renew(s, op)
	case Release:
		return release(s, op)
	case Remove:
		return []state{remove(s, op)}
	default:
		panic(fmt.Sprintf("bug: operation of kind %q", op.Kind))
	}
}

func acquire(s state, op Op) []state {
	switch {
	case op.Outcome == Unknown:
		return []state{s}
	case op.Outcome != OK:
		return []state{s.without(op.Entry)}
	case s.holder == op.Entry && s.fence == op.Fence:
		return []state{s} // reported again
	case s.isGone(op.Entry), op.Fence <= s.fence:
		return nil
	case s.holder != "" && op.Return < s.deadline():
		return nil
	}
	from := s.freed
	if s.holder != "" {
		from = s.deadline()
	}
	// A waited grant has its full TTL but for freshEnough, and it was not given
	// before the lock was free.
	next := s.free(from)
	next.holder, next.fence, next.ttl, next.basis = op.Entry, op.Fence, op.TTL, max(
		op.Call, from-freshEnough,
	)
	return []state{next}
}

func renew(s state, op Op) []state {
	switch {
	case op.Outcome == Unknown:
		return []state{s}
	case op.Outcome == Lost:
		return lost(s, op)
	case op.Waiting && !s.isGone(op.Entry):
		return []state{s}
	case s.holder != op.Entry:
		return nil
	}
	s.basis = max(s.basis, op.Call)
	return []state{s}
}

func release(s state, op Op) []state {
	switch {
	case op.Outcome == Unknown && s.holder == op.Entry:
		return []state{s, s.free(op.Call)}
	case op.Outcome == Unknown:
		return []state{s}
	case op.Outcome == Lost:
		return lost(s, op)
	case s.holder == op.Entry:
		return []state{s.free(op.Call)}
	case op.Waiting && !s.isGone(op.Entry):
		return []state{s.without(op.Entry)}
	default:
		return nil
	}
}

// lost is an answer that says that the entry is gone. Of the holder's that is
// true only after its lease can have ended, and "released" never is: the release
// itself takes the holder away.
func lost(s state, op Op) []state {
	switch {
	case s.holder != op.Entry && op.Waiting:
		return []state{s.without(op.Entry)}
	case s.holder != op.Entry:
		return []state{s}
	case op.Return < s.deadline(), op.Reason == "released":
		return nil
	default:
		return []state{s.free(s.deadline())}
	}
}

func remove(s state, op Op) state {
	if s.holder == op.Entry {
		return s.free(op.Call)
	}
	return s.without(op.Entry)
}

var seed = maphash.MakeSeed()

// model is the fenced lock for porcupine. Operations carry everything in their
// input, times too, because a step sees no clock.
func model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, input, _ any) []any {
			var next []any
			for _, n := range step(s.(state), input.(Op)) {
				next = append(next, n)
			}
			return next
		},
		Hash:              func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		DescribeOperation: func(input, _ any) string { return input.(Op).String() },
		DescribeState: func(s any) string {
			v := s.(state)
			return fmt.Sprintf("holder %q fence %d until %v", v.holder, v.fence, v.deadline())
		},
	}
	return nondeterministic.ToModel()
}
