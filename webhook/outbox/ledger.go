package outbox

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// cell is a record that only the shard's owner writes.
type cell struct {
	key     store.RecordKey
	version uint64 // 0: there is no record
	busy    bool   // a call about it is under way
}

// stamp says which owner wrote a record. With it an owner recognizes its own write after an answer
// that was lost.
type stamp struct {
	Fence uint64 `json:"fence,omitempty"` // of the owner's lock
}

// ledger makes an owner's calls of the store, some at once. It repeats a write until the outcome is
// known. Its methods belong to the owner's goroutine.
type ledger struct {
	stamp
	ctx     context.Context //nolint:containedctx // ends with the owner: no call begins after that
	end     context.CancelFunc
	records store.RecordStore
	lease   *lease
	brought chan func() // what the owner does next
	lost    func()      // called when another replica has written a record

	queue   []call
	running int
	paused  int // calls that must be repeated
	all     sync.WaitGroup
}

// call asks the store, and returns what the owner does next; nil if the call must be repeated,
// because its outcome is unknown.
type call func() (then func())

// bring has the owner call f. It is for other goroutines, and does nothing once the owner has
// ended.
func (l *ledger) bring(f func()) {
	select {
	case l.brought <- f:
	case <-l.ctx.Done():
	}
}

// do makes a call when one of writesAtOnce is free.
func (l *ledger) do(c call) {
	l.queue = append(l.queue, c)
	l.start()
}

func (l *ledger) start() {
	for l.running < writesAtOnce && len(l.queue) > 0 {
		c := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.running++
		l.all.Go(func() {
			then := c()
			l.bring(func() {
				if l.running--; then == nil {
					l.again(c)
				} else {
					then()
				}
				l.start()
			})
		})
	}
}

// again repeats a call after retryPause. Others get its slot meanwhile: in a full store all writes
// are repeated, and deletions have to make space.
func (l *ledger) again(c call) {
	l.paused++
	l.all.Go(func() {
		if store.Pause(l.ctx, retryPause) == nil {
			l.bring(func() {
				l.paused--
				l.do(c)
			})
		}
	})
}

// idle reports whether no call is under way or to be repeated.
func (l *ledger) idle() bool { return l.running == 0 && l.paused == 0 }

// save writes a record, and calls done after that.
func (l *ledger) save(c *cell, value []byte, done func()) {
	is := *c
	l.change(c, done, func() (uint64, error) { return l.put(is.key, is.version, value) })
}

// erase deletes a record, and calls done after that.
func (l *ledger) erase(c *cell, done func()) {
	if c.version == 0 {
		done()
		return
	}
	is := *c
	l.change(c, done, func() (uint64, error) {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		err := l.records.Delete(ctx, is.key, is.version)
		if errors.Is(err, lock.NotFound) {
			err = nil
		}
		return 0, err
	})
}

func (l *ledger) change(c *cell, done func(), write func() (version uint64, err error)) {
	c.busy = true
	l.do(func() func() {
		version, err := write()
		if err != nil && !errors.Is(err, lock.Changed) && !errors.Is(err, lock.NotFound) {
			return nil
		}
		return func() {
			if c.busy = false; err != nil {
				l.lost()
				return
			}
			c.version = version
			done()
		}
	})
}

// errNotOurs: the lease of the shard's lock may be over.
var errNotOurs = errors.New("another replica may own the shard")

// put writes a record over a known version.
func (l *ledger) put(key store.RecordKey, over uint64, value []byte) (version uint64, err error) {
	if over == 0 && !l.lease.holds() {
		return 0, errNotOurs
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	version, err = l.records.Put(ctx, store.RecordPut{RecordKey: key, Value: value, Version: over})
	if !errors.Is(err, lock.Changed) {
		return version, err
	}
	is, bad := l.records.Get(ctx, key) // an attempt before may have written it
	switch {
	case bad == nil && bytes.Equal(is.Value, value):
		return is.Version, nil
	case bad != nil && !errors.Is(bad, lock.NotFound):
		return 0, bad
	}
	return 0, err
}

// each reads all records of a kind. A page takes callTimeout at most: what a store does in more
// time is better begun again, and nothing is sent meanwhile.
func (l *ledger) each(ctx context.Context, kind string, take func(store.Record)) error {
	q := store.RecordQuery{Kind: kind}
	for more := true; more; more = q.After != "" {
		soon, cancel := context.WithTimeout(ctx, callTimeout)
		page, err := l.records.List(soon, q)
		cancel()
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			take(r)
		}
		q.After = page.Next
	}
	return nil
}
