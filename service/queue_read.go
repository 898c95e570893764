package service

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"golang.org/x/sync/singleflight"
)

// queueReads reads queues in the store itself, when the view cannot answer.
type queueReads struct {
	*base
	direct  singleflight.Group // reads of a queue, shared by its waiters
	moments atomic.Uint64      // numbers reads and questions in their order
}

// queuePlace is an entry's position, as read from the store's queues.
type queuePlace struct {
	entry    *lock.Entry // nil if it is missing from one of them
	holds    bool
	choice   []lock.Claim  // see [view.Status]
	blockers []*lock.Entry // the entries that it waits for, if it waits: see [lock.BlockersIn]
}

// placeInStore reads where an entry stands, from reads that began at the moment since or later; 0
// accepts any read. "It holds" stays true from then on; "it waits" does not.
func (q *queueReads) placeInStore(
	ctx context.Context, e *lock.Entry, since uint64,
) (queuePlace, error) {
	if e.Choosing() {
		return q.choosingInStore(ctx, e, since, false)
	}
	st := queuePlace{holds: true}
	for _, c := range e.Claims {
		read, err := q.readQueue(ctx, lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.Number, since)
		if err != nil {
			return queuePlace{}, err
		}
		if st.entry = read.find(e); st.entry == nil {
			return queuePlace{}, nil
		}
		if blockers, waits := lock.BlockersIn(read.entries, e, c.Name, true); waits {
			st.holds = false
			if st.blockers == nil || blockers != nil && len(blockers) < len(st.blockers) {
				st.blockers = blockers
			}
		}
	}
	return st, nil
}

// choosingInStore is placeInStore for an entry that was choosing. It holds once it left queues. If
// it left some, or ended, between two reads, choosingInStore reads again. What a queue lacks then,
// it has lost.
func (q *queueReads) choosingInStore(
	ctx context.Context, e *lock.Entry, since uint64, again bool,
) (queuePlace, error) {
	missing, front := false, map[string]bool{}
	st := queuePlace{}
	for _, c := range e.Claims {
		read, err := q.readQueue(ctx, lock.Ref{Tenant: e.Tenant, Name: c.Name}, e.Number, since)
		if err != nil {
			return queuePlace{}, err
		}
		now := read.find(e)
		switch {
		case now == nil:
			missing = true
			continue
		case !now.Choosing():
			return queuePlace{entry: now, holds: true}, nil
		}
		st.entry, st.blockers = now, []*lock.Entry{now}
		_, waits := lock.BlockersIn(read.entries, now, c.Name, false)
		front[c.Name] = !waits
	}
	if missing && st.entry != nil && !again {
		return q.choosingInStore(ctx, e, q.moment(), true)
	}
	if st.entry != nil {
		st.choice, _ = st.entry.Choice(func(c lock.Claim) bool { return front[c.Name] })
	}
	return st, nil
}

// find returns the entry as it was read. It returns nil if the entry is missing, or another one
// has its id.
func (r queueRead) find(e *lock.Entry) *lock.Entry {
	if place := lock.Place(r.entries, e.ID); place >= 0 && r.entries[place].Number == e.Number {
		return r.entries[place]
	}
	return nil
}

// readQueue reads a queue at number or later, by a read that began at the moment since or later.
// Requests for one lock share reads. If the read in progress began too early, the next one is
// late enough.
func (q *queueReads) readQueue(
	ctx context.Context, r lock.Ref, number, since uint64,
) (queueRead, error) {
	read, err := q.shareRead(ctx, r)
	if err == nil && (read.number < number || read.began < since) {
		read, err = q.shareRead(ctx, r)
	}
	return read, err
}

type queueRead struct {
	entries []*lock.Entry
	number  uint64
	began   uint64 // a moment
}

// moment returns a number greater than every earlier one. It shows whether a read began before a
// question came in. A clock could not, because two reads may have the same time.
func (q *queueReads) moment() uint64 { return q.moments.Add(1) }

func (q *queueReads) shareRead(ctx context.Context, r lock.Ref) (queueRead, error) {
	read := q.direct.DoChan(r.Tenant+"/"+r.Name, func() (any, error) {
		ctx, cancel := context.WithTimeout(q.closing, readTimeout)
		defer cancel()
		began := q.moment()
		entries, number, err := q.Store.Queue(ctx, r)
		return queueRead{entries, number, began}, err
	})
	select {
	case r := <-read:
		return r.Val.(queueRead), r.Err
	case <-ctx.Done():
		return queueRead{}, &lock.Error{
			Code: lock.StoreUnavailable, Detail: "the store did not answer in time; " +
				"retry with the same Idempotency-Key", RetryAfter: time.Second,
			Cause: ctx.Err(),
		}
	}
}

// distrust makes the store check a number that it has not reached. It returns nil if the number
// is trusted after all: this replica did not know a fence floor that another replica had set, and
// the client with the token may hold.
func (q *queueReads) distrust(ctx context.Context, number, newest uint64) error {
	q.Logger.Error(
		"a genuine lock token is ahead of the store, as far as this replica knows", "token_number",
		number, "store_number", newest,
	)
	if err := q.Store.Distrust(ctx, number); err != nil {
		return err
	}
	if q.Store.Refusal() == nil {
		return nil
	}
	return lock.LostBecause(lock.Unknown)
}
