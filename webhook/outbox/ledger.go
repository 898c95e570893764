package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// stamp names the write that made a record. With it an owner finds its own write after an answer that
// was lost. An earlier write of its own comes back with a backup: then the shard is lost.
type stamp struct {
	Fence uint64 `json:"fence,omitempty"` // of the owner's lock
	Write uint64 `json:"write,omitempty"` // the owner's writes, from 1 on
}

// cell is a record that only the shard's owner writes.
type cell struct {
	key     store.RecordKey
	version uint64 // 0: there is no record, as far as is known
	wrote   uint64 // the owner's write that made the version; 0: another owner's
	unsure  bool   // a write failed, and may have been executed
	busy    bool   // a call about it is under way
}

// ledger makes an owner's calls of the store, some at once. Its methods belong to the owner's
// goroutine.
type ledger struct {
	records Records
	lease   *lease
	fence   uint64
	writes  uint64
	bring   func(func()) // has the owner call something
	lost    func()       // called when another replica has written a record

	queue   []call
	running int
	all     sync.WaitGroup
}

// call asks the store, and returns what the owner does then.
type call func(context.Context) (then func())

// do makes a call when one of writesAtOnce is free. The call goes on when the shard is lost: its
// outcome should be known.
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
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			defer cancel()
			then := c(ctx)
			l.bring(func() {
				l.running--
				then()
				l.start()
			})
		})
	}
}

// idle reports whether no call is under way.
func (l *ledger) idle() bool { return l.running == 0 }

// after has the owner call f later.
func (l *ledger) after(d time.Duration, f func()) { time.AfterFunc(d, func() { l.bring(f) }) }

// save writes a record. done gets nil, or an error after which the outcome is unknown.
func (l *ledger) save(c *cell, encode func(stamp) []byte, done func(error)) {
	by, was := l.stamp(), *c
	value := encode(by)
	c.busy = true
	l.do(func(ctx context.Context) func() {
		version, err := l.put(ctx, was, value)
		return func() {
			c.busy = false
			switch {
			case err == nil:
				c.version, c.wrote, c.unsure = version, by.Write, false
			case errors.Is(err, lock.Changed), errors.Is(err, lock.NotFound):
				l.lost()
				return
			default:
				c.unsure = true
			}
			done(err)
		}
	})
}

// errNotOurs: the lease of the shard's lock may be over.
var errNotOurs = errors.New("another replica may own the shard")

func (l *ledger) stamp() stamp {
	l.writes++
	return stamp{l.fence, l.writes}
}

// put writes a record. A new one has no version to compare, so it is written only while no other
// replica can own the shard, however long the call has waited for its turn.
func (l *ledger) put(ctx context.Context, c cell, value []byte) (version uint64, err error) {
	if c, err = l.resolve(ctx, c); err != nil {
		return 0, err
	}
	if c.version == 0 && !l.lease.holds() {
		return 0, errNotOurs
	}
	return l.records.Put(ctx, store.RecordPut{RecordKey: c.key, Value: value, Version: c.version})
}

// resolve finds out whether an unknown write was executed. It is [lock.Changed] if another owner has
// written the record.
func (l *ledger) resolve(ctx context.Context, c cell) (cell, error) {
	if !c.unsure {
		return c, nil
	}
	is, err := l.records.Get(ctx, c.key)
	var by stamp
	switch {
	case errors.Is(err, lock.NotFound) && c.version == 0:
	case err != nil:
		return c, err
	case is.Version == c.version || json.Unmarshal(is.Value, &by) == nil && by.Fence == l.fence && by.Write > c.wrote:
		c.version = is.Version
	default:
		return c, lock.Errorf(lock.Changed, "another replica wrote the record")
	}
	return c, nil
}

// erase deletes a record, and tries again until the outcome is known.
func (l *ledger) erase(c *cell, done func()) {
	if c.version == 0 && !c.unsure {
		done()
		return
	}
	c.busy = true
	was := *c
	l.do(func(ctx context.Context) func() {
		err := l.remove(ctx, was)
		return func() {
			c.busy = false
			switch {
			case err == nil, errors.Is(err, lock.NotFound):
				*c = cell{key: c.key}
				done()
			case errors.Is(err, lock.Changed):
				l.lost()
			default:
				c.busy = true
				l.after(retryPause, func() { l.erase(c, done) })
			}
		}
	})
}

func (l *ledger) remove(ctx context.Context, c cell) error {
	c, err := l.resolve(ctx, c)
	if err != nil || c.version == 0 {
		return err
	}
	return l.records.Delete(ctx, c.key, c.version)
}

// each reads all records of a kind.
func (l *ledger) each(ctx context.Context, kind string, take func(store.Record)) error {
	q := store.RecordQuery{Kind: kind}
	for {
		soon, cancel := context.WithTimeout(ctx, callTimeout)
		page, err := l.records.List(soon, q)
		cancel()
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			take(r)
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}
