package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Trust decides whether a store's numbers can be trusted. A number is a position in the store (a
// revision, a zxid) plus the fence floor.
//
// After a restore from a backup, positions restart from an old one, and the store would issue
// fences a second time. A linearizable answer reveals that, if its call was sent after a higher
// number was received, and it shows a lower one or another cluster. Answers that overtake each
// other prove nothing, nor does one member's own view. After such an answer the replica refuses
// grants at once. It then reads the store's own record again, which distinguishes a lost past from
// a floor that another replica has set.
//
// It is safe for concurrent use.
type Trust struct {
	floor    atomic.Uint64 // only rises
	greatest atomic.Uint64 // of the received numbers
	cluster  atomic.Uint64 // the expected cluster; 0 if the store has no identity
	refusal  atomic.Pointer[refusal]
	told     atomic.Pointer[string] // the last logged reason for refusing grants

	doubts chan struct{}
	// held during a new read of the records, so that an old answer cannot undo a newer one
	reading chan struct{}
}

// refusal is why nothing may be granted. Each is a new value, so that a decision about an earlier
// one does not lift it.
type refusal struct {
	why  string
	form error // of [CheckForm]: another version is needed, which other replicas may have
	lost bool  // the store lost its past, and needs a fence floor
}

// Records is what a linearizable answer states about a store's numbers.
type Records struct {
	Position uint64 // the newest one
	Cluster  uint64 // the cluster that answered; 0 if the store has no identity
	Kept     uint64 // the identity kept with the data
	Floor    uint64
	Distrust uint64 // a number that the store should have reached, but had not; 0 none
	Form     int    // see [Form]

	// Keep, if not nil, makes the store compare its writes with these records from now on. It is
	// called when they are adopted. A write that was compared with older records would ignore the
	// new floor, or the new distrust.
	Keep func()
}

// NewTrust returns an empty trust.
func NewTrust() *Trust {
	return &Trust{doubts: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
}

// Floor returns the floor that is added to every position.
func (t *Trust) Floor() uint64 { return t.floor.Load() }

// Number returns the number of a position.
func (t *Trust) Number(position int64) uint64 { return uint64(position) + t.floor.Load() }

// Position returns the position of a number.
func (t *Trust) Position(number uint64) int64 { return int64(number - t.floor.Load()) }

// Sent returns the mark of a call that is sent now, for [Trust.Received].
func (t *Trust) Sent() (mark uint64) { return t.greatest.Load() }

// Received records the position in a linearizable answer to the call that was sent at the mark.
// If it proves that the store lost its past, nothing is granted until the store's records were
// read again.
func (t *Trust) Received(mark uint64, position int64, cluster uint64) {
	number, expected := t.Number(position), t.cluster.Load()
	switch {
	case expected != 0 && cluster != expected:
		t.doubt("the store answers as another cluster than before; retry while the server checks it")
	case number < mark:
		t.doubt(fmt.Sprintf(
			"the store is at %d although %d was received from it before; retry while the server checks it",
			number, mark,
		))
	default:
		t.Saw(position)
	}
}

// Saw records a received position that proves nothing by itself, such as that of an event in a
// feed.
func (t *Trust) Saw(position int64) { t.reach(t.Number(position)) }

func (t *Trust) reach(number uint64) {
	for known := t.greatest.Load(); number > known; known = t.greatest.Load() {
		if t.greatest.CompareAndSwap(known, number) {
			return
		}
	}
}

func (t *Trust) doubt(why string) {
	t.refusal.Store(&refusal{why: why})
	t.wake()
}

func (t *Trust) wake() {
	select {
	case t.doubts <- struct{}{}:
	default: // it is already being checked
	}
}

// Refusal returns why nothing may be granted, or nil.
func (t *Trust) Refusal() *lock.Error {
	r := t.refusal.Load()
	if r == nil {
		return nil
	}
	e := &lock.Error{
		Code: lock.StoreUnavailable, Detail: r.why, RetryAfter: time.Minute, Cause: r.form,
	}
	switch {
	case r.form != nil:
		e.RetryAfter = retryAfter // another replica may be newer
	case r.lost:
		e.Code = lock.FenceFloorRequired
	}
	return e
}

// TellRefusal logs why nothing is granted, once.
func (t *Trust) TellRefusal(log *slog.Logger) {
	why := ""
	if r := t.Refusal(); r != nil {
		why = r.Detail
	}
	if was := t.told.Swap(&why); why != "" && (was == nil || *was != why) {
		log.Error("nothing is granted", "why", why)
	}
}

// Attend checks doubts until ctx ends. look reads the records again; Attend repeats it until it
// succeeds.
func (t *Trust) Attend(ctx context.Context, look func(context.Context) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.doubts:
		}
		for look(ctx) != nil && Pause(ctx, lookAgain) == nil {
		}
	}
}

// lookAgain is the pause after a failed look.
const lookAgain = 100 * time.Millisecond

// Reread reads a store's records and adopts them. read makes a linearizable call and returns the
// records, all at one position. told is a number known to be issued, as by a token, or 0. lost is
// a number that the store should have reached, but has not, if the caller must record it; 0 none.
func (t *Trust) Reread(
	ctx context.Context, told uint64, read func(context.Context) (Records, error),
) (lost uint64, err error) {
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	mark, before := max(told, t.Sent()), t.refusal.Load()
	r, err := read(ctx)
	if errors.Is(err, ErrRecords) {
		t.refusal.Store(&refusal{why: err.Error()})
	}
	if err != nil {
		return 0, err
	}
	lost = t.takeOver(mark, before, r)
	if r.Keep != nil {
		r.Keep()
	}
	return lost, nil
}

// takeOver adopts records that were requested at the mark, and returns what they lack. They do not
// lift a refusal from after the mark.
func (t *Trust) takeOver(mark uint64, before *refusal, r Records) (unrecorded uint64) {
	floor := max(r.Floor, t.floor.Load())
	t.floor.Store(floor)
	t.cluster.Store(r.Cluster)
	number := t.Number(int64(r.Position))
	lost, form := r.Distrust, CheckForm(r.Form)
	if form == nil && lost == 0 && number < mark { // nothing is recorded in another form's records
		lost, unrecorded = mark, mark
		t.reach(mark)
		t.wake() // until it is recorded
	}
	switch {
	case form != nil:
		t.refusal.Store(&refusal{why: form.Error(), form: form})
	case r.Floor < floor:
		t.refusal.Store(&refusal{why: fmt.Sprintf(
			"%v: the fence floor was lowered from %d to %d%s", ErrRecords, floor, r.Floor, remedy)})
	case r.Kept != r.Cluster:
		t.refusal.Store(&refusal{
			lost: true,
			why:  "the store was restored from a backup: its cluster id is not the one in its data" + remedy,
		})
	case lost != 0:
		t.refusal.Store(&refusal{
			lost: true,
			why: fmt.Sprintf(
				"the store lost its past: fence %d was handed out, but the store has not reached it%s", lost,
				remedy,
			),
		})
	default:
		t.reach(number)
		t.refusal.CompareAndSwap(before, nil)
	}
	return unrecorded
}

// maxFloor keeps fences where JSON numbers are exact, which is below 2^53, for 2^51 further
// writes.
const maxFloor = 1<<53 - 1<<51

// CheckFloor rejects a floor with which the numbers of a store at the position would come near
// 2^53.
func CheckFloor(floor, position uint64) error {
	if floor != 0 && (floor > maxFloor || position > maxFloor-floor) {
		return fmt.Errorf("the fence floor %d is too high: fences have to stay well "+
			"below 2^53, where JSON numbers are no longer exact; it can be at most %d",
			floor, maxFloor-min(position, maxFloor))
	}
	return nil
}

// Raises reports whether a store with these records must record the operator's floor: not for 0,
// nor for the recorded one. An error explains why the floor cannot be right.
func (r Records) Raises(floor uint64) (bool, error) {
	if err := CheckFloor(floor, r.Position); err != nil {
		return false, err
	}
	switch {
	case floor == 0, floor == r.Floor:
		return false, nil
	case floor < r.Floor:
		return false, fmt.Errorf(
			"the fence floor %d is below %d, which the store was given before", floor, r.Floor,
		)
	case r.Position+floor <= r.Distrust:
		return false, fmt.Errorf(
			"the fence floor %d is too low: fences would go on at %d, and %d was handed out before", floor,
			r.Position+floor, r.Distrust,
		)
	}
	return true, nil
}

// TellLow logs a floor that raised the recorded one but is below the numbers that the store
// itself has issued, as a mistyped one may be. It does no harm: fences continue above both. jump
// bounds how far a restore alone can have moved positions forward: none of these is known to have
// been a fence.
func (r Records) TellLow(log *slog.Logger, floor, jump uint64) {
	position := r.Position
	if position > jump {
		position -= jump
	}
	if newest := max(position+r.Floor, r.Distrust); floor < newest {
		log.Warn("the fence floor is below what the store has handed out before; "+
			"fences go on above the store's own: if it was mistyped, "+
			"start the server with the right one",
			"floor", floor, "newest", newest, "next", r.Position+floor+1)
	}
}
