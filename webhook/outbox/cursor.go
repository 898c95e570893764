package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// cursorKind is the kind of the records that say up to where shards have told everything.
const cursorKind = "webhook-cursor"

// cursor is up to where everything was delivered, or is kept as owed. Whoever takes the
// shard over writes it first: from then on the owner before can write it no more.
type cursor struct {
	at    lock.EventID // as it is in the store
	known bool         // there was one
	stored
	written time.Time
	writing bool
	lost    bool // another one writes it now
	behind  bool // something was delivered or kept since
	passed  bool // something happened since, of whatever concern

	since time.Time // when the first event happened that the store's cursor is not behind; zero is none
	next  time.Time // the same, once what is being written is
}

// passes takes note of an event that was read, and of when it happened.
func (c *cursor) passes(at time.Time) {
	c.passed = true
	if c.since.IsZero() {
		c.since = at
	}
	if c.next.IsZero() {
		c.next = at
	}
}

type cursorForm struct {
	After string `json:"after"`
	stamp
}

// after is where the events begin that are not told yet. For a shard that nobody has had, that
// is where what this replica knows begins: callers may wait already.
func (c *cursor) after() *lock.EventID { return &c.at }

func (w *owner) cursorKey() store.RecordKey {
	return store.RecordKey{Kind: cursorKind, Tenant: store.NoTenant, ID: w.name}
}

// claim reads the cursor and writes it anew.
func (w *owner) claim() error {
	ctx, cancel := context.WithTimeout(w.ctx, callTimeout)
	defer cancel()
	is, err := w.Records.Get(ctx, w.cursorKey())
	if errors.Is(err, lock.NotFound) {
		return nil // it is made when there is a place
	}
	if err != nil {
		return err
	}
	var f cursorForm
	at, bad := lock.EventID{}, json.Unmarshal(is.Value, &f)
	if bad == nil {
		at, bad = lock.ParseEventID(f.After)
	}
	if bad != nil {
		w.Logger.Error("the cursor of a shard cannot be read; what happened until now is missed", "shard", w.name, "error", bad)
	}
	w.cursor.stored = stored{version: is.Version}
	w.cursor.at, w.cursor.known = at, true
	now, err := w.putCursor(ctx, at, w.stamp())
	if err == nil {
		w.cursor.stored = now
	}
	return err
}

func (w *owner) putCursor(ctx context.Context, at lock.EventID, by stamp) (stored, error) {
	return w.put(ctx, w.cursorKey(), store.Encode(cursorForm{at.String(), by}), by, w.cursor.stored)
}

// writeCursor brings the store's cursor up to date: soon behind what was delivered or kept,
// later behind what concerned nobody.
func (w *owner) writeCursor(now time.Time) {
	c, at := &w.cursor, w.window.settled()
	wait := idlePause
	if c.behind {
		wait = cursorPause
	}
	// Numbers grow with each write of the store, this one's own too: only what happened counts.
	if c.lost || c.writing || c.known && (at == c.at || !c.behind && !c.passed) || now.Sub(c.written) < wait {
		return
	}
	c.writing, c.behind, c.passed, c.next = true, false, false, w.window.oldest()
	by := w.stamp()
	w.writes.do(func(ctx context.Context) func() {
		is, err := w.putCursor(ctx, at, by)
		return func() { w.cursorWritten(at, is, err) }
	})
}

func (w *owner) cursorWritten(at lock.EventID, is stored, err error) {
	c := &w.cursor
	c.writing, c.written = false, time.Now()
	switch {
	case err == nil:
		c.at, c.known, c.stored, c.since = at, true, is, c.next
	case errors.Is(err, lock.Changed), errors.Is(err, lock.NotFound):
		w.lostShard()
	default:
		c.behind = true
	}
}

// lostShard ends what this replica does for the shard: somebody else has written what only
// its owner writes.
func (w *owner) lostShard() {
	if !w.cursor.lost {
		w.Logger.Warn("another replica sends these webhooks now", "shard", w.name)
	}
	w.cursor.lost = true
	w.lose()
}

// lostPast ends what this replica does for the shard when numbers go back: the store was restored from a
// backup. What the owner knows is of a past that is lost, and what happens now has ids that were told
// already. Nothing can be written by version until a fence floor is given; whoever begins then goes by
// what the store has kept.
func (w *owner) lostPast() {
	w.Logger.Warn("the store has lost its past; what it has kept of these webhooks is sent once it has a fence floor", "shard", w.name)
	w.cursor.lost = true
	w.lose()
}

// writeLast leaves the cursor and states as they are at the end.
func (w *owner) writeLast() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), callTimeout)
	defer cancel()
	if at := w.window.settled(); !w.cursor.known || at != w.cursor.at {
		if _, err := w.putCursor(ctx, at, w.stamp()); err != nil {
			w.Logger.Debug("the cursor of a shard was not written; what it has told last is told again", "shard", w.name, "error", err)
		}
	}
	w.writeLastStates(ctx, time.Now())
}

// Since returns the number up to which all shards have told everything; 0 if nothing is known
// of that. A replica whose events begin there misses nothing that there is to tell. A store that does not
// answer is asked again until ctx ends; then the error says why.
func Since(ctx context.Context, records Records) (number uint64, err error) {
	for {
		soon, cancel := context.WithTimeout(ctx, callTimeout)
		page, err := records.List(soon, store.RecordQuery{Kind: cursorKind, Tenant: store.NoTenant}) // of a few
		cancel()
		if err == nil {
			return earliest(page.Records), nil
		}
		if !pause(ctx, retryPause) {
			return 0, err
		}
	}
}

// earliest is the number behind which nothing was told yet by some shard, 0 if none says so.
func earliest(cursors []store.Record) (number uint64) {
	for _, r := range cursors {
		var f cursorForm
		if json.Unmarshal(r.Value, &f) != nil {
			continue
		}
		if at, bad := lock.ParseEventID(f.After); bad == nil && at.Number > 0 && (number == 0 || at.Number-1 < number) {
			number = at.Number - 1
		}
	}
	return number
}
