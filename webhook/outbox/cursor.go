package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// item is an event with deliveries that are neither made nor written yet, or something else that
// waits for deliveries.
type item struct {
	id         lock.EventID
	read       time.Time
	at         time.Time   // when it happened; zero is when it was read
	open       int         // deliveries that are not settled
	deliveries []*delivery // all of them; nil once each is being written
	again      bool        // it was asked for: the target gets it also while it is paused
	done       func()      // called when nothing is open any more; nil does nothing
}

func (it *item) settle() {
	if it.open--; it.open == 0 && it.done != nil {
		it.done()
	}
}

// hold has the item wait for a delivery.
func (it *item) hold(d *delivery) {
	d.items = append(d.items, it)
	it.deliveries = append(it.deliveries, d)
	it.open++
}

// window has items in order, from the first that is not settled on.
type window struct{ items []*item }

// wait adds an item, unless it is settled.
func (v *window) wait(it *item) {
	if it.open > 0 {
		v.items = append(v.items, it)
	}
}

// oldest drops the items that are settled, and returns the first that is not, or nil.
func (v *window) oldest() *item {
	for len(v.items) > 0 && v.items[0].open == 0 {
		v.items[0] = nil
		v.items = v.items[1:]
	}
	if len(v.items) == 0 {
		return nil
	}
	return v.items[0]
}

// cursor is the event up to which everything is delivered or written, with the events after it. The
// owner writes it first when it takes the shard over: then the owner before can write it no more.
type cursor struct {
	cell
	at    lock.EventID // as it is in the store
	known bool         // there is one in the store

	window              // events that were read
	last   lock.EventID // everything up to it was read

	tried  time.Time // the last write
	soon   bool      // a delivery was made or written since
	passed bool      // an event was read since
}

type cursorForm struct {
	After string `json:"after"`
	stamp
}

// reached says that everything up to id was read.
func (c *cursor) reached(id lock.EventID) { c.last = c.last.Later(id) }

// settled returns the place before the first event that is not settled.
func (c *cursor) settled() lock.EventID {
	if it := c.oldest(); it != nil {
		return justBefore(it.id)
	}
	return c.last
}

// behind returns since when events wait, or the cursor cannot be written; zero if neither.
func (c *cursor) behind(now time.Time) (since time.Time) {
	if it := c.oldest(); it != nil {
		since = first(it.read, it.at)
	}
	if c.busy && now.Sub(c.tried) > callTimeout {
		since = first(since, c.tried)
	}
	return since
}

// justBefore is the place before an event.
func justBefore(id lock.EventID) lock.EventID {
	switch {
	case id.Index > 0:
		return lock.EventID{Number: id.Number, Index: id.Index - 1}
	case id.Number > 0:
		return lock.EventID{Number: id.Number - 1, Index: math.MaxUint32}
	}
	return id
}

// claim reads the cursor and writes it again.
func (c *cursor) claim(ctx context.Context, l *ledger) (unreadable, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	is, err := l.records.Get(ctx, c.key)
	if errors.Is(err, lock.NotFound) {
		return nil, nil // no replica had the shard yet
	}
	if err != nil {
		return nil, err
	}
	c.at, unreadable = parseCursor(is)
	put := store.RecordPut{RecordKey: c.key, Value: c.encode(c.at, l), Version: is.Version}
	c.version, err = l.records.Put(ctx, put)
	c.known = true
	return unreadable, err
}

func (*cursor) encode(at lock.EventID, l *ledger) []byte {
	return store.Encode(cursorForm{at.String(), l.stamp})
}

func parseCursor(r store.Record) (at lock.EventID, err error) {
	var f cursorForm
	if err = json.Unmarshal(r.Value, &f); err == nil {
		at, err = lock.ParseEventID(f.After)
	}
	return at, err
}

// write brings the store's cursor up to date. Numbers grow with each write of the store, also with
// this one: without an event there is nothing to write.
func (c *cursor) write(l *ledger, now time.Time) {
	at, pause := c.settled(), idlePause
	if c.soon {
		pause = cursorPause
	}
	idle := c.known && (at == c.at || !c.soon && !c.passed)
	if c.busy || idle || now.Sub(c.tried) < pause {
		return
	}
	c.soon, c.passed, c.tried = false, false, now
	l.save(&c.cell, c.encode(at, l), func() { c.at, c.known = at, true })
}

// Since returns the number up to which the owners of all shards have sent everything; 0 if no
// cursor says so. A replica whose events begin there misses nothing. If the store does not answer,
// Since asks again until ctx ends, and returns the error.
func Since(ctx context.Context, records store.RecordStore) (number uint64, err error) {
	for {
		if number, err = earliest(ctx, records); err == nil || store.Pause(ctx, retryPause) != nil {
			return number, err
		}
	}
}

// earliest returns the number before that of the earliest cursor: of its events some may be unsent.
func earliest(ctx context.Context, records store.RecordStore) (number uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	q := store.RecordQuery{Kind: cursorKind, Tenant: store.NoTenant}
	for r, err := range store.EachRecord(ctx, records, q) {
		if err != nil {
			return 0, err
		}
		at, bad := parseCursor(r)
		if bad == nil && at.Number > 0 && (number == 0 || at.Number-1 < number) {
			number = at.Number - 1
		}
	}
	return number, nil
}
