package zookeeper

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// guardInterval is how often the feed writes, to check that the store answers and that the watch
	// works. It is also the load on an idle store.
	guardInterval = time.Second
	// feedTimeout bounds how long the feed may lag behind a write of its guard.
	feedTimeout = 2 * time.Second
)

// feed follows the log for all followers of the store, with a single watch on the log's data. It
// keeps the entries, so that a follower can begin at any time.
type feed struct {
	reader  *reader
	meta    *ownRecord
	leases  *leases
	observe store.Observer

	mu        sync.Mutex
	current   bool
	listing   *listing // in progress; nil otherwise
	epoch     int32
	born      int64    // czxid of the log's node
	next      int32    // the next expected record
	last      *written // the record before it; nil if it was not read
	zxid      int64    // everything up to it was applied
	newest    int64    // the log's zxid at the start of the feed, which lags until it gets there
	whole     bool     // entries has all entries as of zxid
	number    uint64   // the greatest that followers have received
	floor     uint64   // of the entries' numbers
	time      int64    // the server's, in ms, recently
	entries   index
	records   logRecords // records that still exist
	followers map[*follower]struct{}

	ownMu sync.Mutex
	own   []written     // by this replica, known without a read
	fresh chan struct{} // there are new ones, or one is next now
	ahead atomic.Bool   // the tail has some that are not next yet

	again chan error // why the feed restarts
}

func newFeed(s *Store) *feed {
	return &feed{
		reader: s.reader, meta: s.meta, leases: s.leases, observe: s.observe, entries: newIndex(),
		followers: map[*follower]struct{}{}, fresh: make(chan struct{}, 1), again: make(chan error, 1),
	}
}

// catchUp waits for the feed to have everything that exists now.
func (s *Store) catchUp(ctx context.Context) error {
	l, err := s.reader.reads.get(ctx)
	if err != nil {
		return err
	}
	stat, err := s.reader.barrierOn(ctx, l)
	if err == nil && !s.feed.reaches(ctx, stat.Mzxid) {
		err = errBehind
	}
	return err
}

// entry returns the feed's entry, or nil.
func (f *feed) entry(k key) *lock.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries.byKey[k]
}

// placed returns the feed's entry and the zxid at which it joined; ok is false if the feed is down,
// or has not started over after a new floor.
func (f *feed) placed(k key) (e *lock.Entry, zxid int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e = f.entries.byKey[k]; e != nil {
		zxid = int64(e.Number - f.floor)
	}
	return e, zxid, f.current && f.reader.trust.Floor() == f.floor
}

// queueTimeout bounds how long a call waits for the feed before it reads itself.
const queueTimeout = 200 * time.Millisecond

// queue returns a lock's entries as of a transaction that is no older than the call, unless the
// feed lags. It asks the store over the connector for that transaction.
func (f *feed) queue(
	ctx context.Context, c *connector, r lock.Ref,
) (entries []*lock.Entry, number uint64, ok bool) {
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if !current {
		return nil, 0, false
	}
	stat, err := f.reader.barrier(ctx, c)
	if err != nil {
		return nil, 0, false
	}
	for end := time.Now().Add(queueTimeout); ; {
		f.mu.Lock()
		if f.current && f.zxid >= stat.Mzxid {
			defer f.mu.Unlock()
			return f.entries.queue(r), f.reader.number(f.zxid), true
		}
		f.mu.Unlock()
		if time.Now().After(end) || store.Pause(ctx, time.Millisecond) != nil {
			return nil, 0, false
		}
	}
}

// here returns the feed's position. That may be in an earlier log than the one in use, which
// [Store.epoch] names; positions of different logs do not compare.
func (f *feed) here() place {
	f.mu.Lock()
	defer f.mu.Unlock()
	return place{f.epoch, f.next}
}

// position returns the record that the feed expects next.
func (f *feed) position() int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// wrote gives the feed a record that this replica wrote, so that it need not read it. The feed
// applies the next record at once and leaves others to the tail.
func (f *feed) wrote(w written) {
	if f.applyOwn(w) {
		if f.ahead.Load() {
			f.refresh()
		}
		return
	}
	f.ownMu.Lock()
	f.own = append(f.own, w)
	f.ownMu.Unlock()
	f.refresh()
}

func (f *feed) applyOwn(w written) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	following := f.current || f.listing != nil
	return following && w.epoch == f.epoch && w.n == f.next && f.applyLocked([]written{w}, 0) == nil
}

// refresh makes the tail look at the records that it already has.
func (f *feed) refresh() {
	select {
	case f.fresh <- struct{}{}:
	default: // it will look anyway
	}
}

func (f *feed) takeOwn() []written {
	f.ownMu.Lock()
	defer f.ownMu.Unlock()
	own := f.own
	f.own = nil
	return own
}

// run follows until ctx ends, and restarts after every doubt.
func (f *feed) run(ctx context.Context) {
	store.Restart(ctx, f.follow, func(err error) {
		f.lost(err)
		f.observe.Restarted()
		f.reader.log.Warn("the feed is interrupted and starts over", "error", err)
	})
}

func (f *feed) lost(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listing = nil
	if !errors.Is(err, errRaced) && (answered(err) || errors.Is(err, errDamaged)) {
		// otherwise it would fail again
		f.whole = false
	}
	if !f.current {
		return
	}
	f.current = false
	for to := range f.followers {
		to.lose(unavailable(err, "follow the store", false))
	}
}

// doubt makes the feed list the entries again.
func (f *feed) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = false
	select {
	case f.again <- errGap:
	default: // it will anyway
	}
}

// shows reports whether the feed is current, has reached the zxid, and has the entry.
func (f *feed) shows(e *lock.Entry, zxid int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.entries.byKey[keyOf(e)]
	return f.current && f.zxid >= zxid && known != nil && known.Number == e.Number &&
		known.Handle == e.Handle
}

// follow follows the log on one connection, and lists the entries meanwhile, until something
// fails.
func (f *feed) follow(ctx context.Context) error {
	l, err := f.reader.reads.get(ctx)
	if err != nil {
		return err
	}
	if err := f.meta.refresh(ctx); err != nil {
		return err
	}
	if err := f.start(ctx, l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &tail{
		feed: f, link: l, ahead: map[int32]written{},
		heads: make(chan head, 1), read: make(chan reading, 1), listed: make(chan error, 1),
	}
	var beside sync.WaitGroup
	beside.Go(func() { f.guard(ctx, l) })
	beside.Go(func() { t.listed <- f.list(ctx, l) })
	defer beside.Wait()
	defer cancel()
	defer t.reads.Wait()
	return t.run(ctx)
}

// guard writes to the log every guardInterval. If the store does not answer, or a watch does not
// fire, guard fails the connection. A starting feed may lag, because nothing relies on it yet.
func (f *feed) guard(ctx context.Context, l *link) {
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	for {
		stat, err := f.reader.barrierOn(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.fail(err)
			return
		}
		f.leases.clock.tick()
		f.mu.Lock()
		f.time = stat.Mtime
		starting := f.listing != nil || f.zxid < f.newest
		f.mu.Unlock()
		if !starting && !f.reaches(ctx, stat.Mzxid) {
			l.fail(errBehind)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

var errBehind = errors.New("the feed stays behind the store")

// reaches waits for the feed to apply everything up to the zxid. It counts its checks instead of
// reading a clock, which continues while the process is stopped. A feed that is down reports no
// lag, so the reported lag grows.
func (f *feed) reaches(ctx context.Context, zxid int64) bool {
	const each = 20 * time.Millisecond
	start := time.Now()
	for looks := 0; ; looks++ {
		f.mu.Lock()
		there, current := f.zxid >= zxid, f.current
		f.mu.Unlock()
		if current {
			f.observe.FeedLag(time.Since(start))
		}
		if there || ctx.Err() != nil {
			return true
		}
		if looks > int(feedTimeout/each) || store.Pause(ctx, each) != nil {
			return ctx.Err() != nil
		}
	}
}

// apply applies consecutive records, and that nothing else happened up to zxid. It skips own
// records that were applied meanwhile.
func (f *feed) apply(records []written, zxid int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := func(w written) bool { return w.n < f.next }
	return f.applyLocked(slices.DeleteFunc(records, known), zxid)
}

func (f *feed) applyLocked(records []written, zxid int64) error {
	if f.reader.trust.Floor() != f.floor { // the entries' numbers use another floor
		return errMeta
	}
	var changes []store.Change
	for _, w := range records {
		if err := f.follows(w); err != nil {
			f.whole = false // some records may be in entries and unreported
			return err
		}
		f.next, f.zxid, f.last = w.n+1, w.zxid, &w
		for _, c := range w.record.Changes {
			changes = f.change(changes, c, w)
		}
		f.records.add(w, f.time)
	}
	f.zxid = max(f.zxid, zxid)
	f.reader.trust.Saw(f.zxid)
	number := f.reader.number(f.zxid)
	switch {
	case f.listing != nil, number <= f.number && len(changes) == 0:
		return nil
	}
	f.number = number
	for to := range f.followers {
		to.apply(update{number, changes})
	}
	return nil
}

// follows returns an error if a record is not the next, or if it changed meta since the feed
// started.
func (f *feed) follows(w written) error {
	switch {
	case w.zxid <= f.zxid || w.n != f.next:
		return errGap
	case w.record.Meta && w.zxid > f.newest:
		return errMeta
	}
	return nil
}

// change applies one change. During a list, an entry that left may still be listed.
func (f *feed) change(changes []store.Change, c change, w written) []store.Change {
	k, r := c.key(), f.reader
	if c.Joined != nil {
		e := r.joined(c, w.zxid)
		f.entries.add(e)
		if c.Narrowed != 0 {
			return append(changes, store.Change{Number: r.number(w.zxid), Narrowed: e})
		}
		f.leases.joined(e, w.here)
		return append(changes, store.Change{Number: e.Number, Joined: e})
	}
	f.leases.left(k)
	e := f.entries.byKey[k]
	listed := f.listing != nil && (e == nil || int64(e.Number-f.floor) <= f.listing.from)
	if !(listed && f.listing.left(k)) && e == nil {
		return changes
	}
	f.entries.remove(k)
	return append(changes, store.Change{
		Number: r.number(w.zxid), Left: c.ID, Reason: c.Reason, Note: (*lock.Note)(c.Note),
	})
}

var errMeta = errOutdated
