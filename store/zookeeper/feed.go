package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/kept"
)

const (
	// guardInterval is how often the feed writes, to find out that the store
	// answers and that the watch still works. It is also what an idle store costs.
	guardInterval = time.Second
	// feedPatience is how long the feed may stay behind a write of its guard.
	feedPatience = 2 * time.Second

	// While for alone nobody but this replica has written, its feed reads the log
	// no more often than every lull: it knows its own records without that.
	alone = time.Second
	lull  = 10 * time.Millisecond
)

// feed follows the log for all followers of the store, with a single watch: on
// the log's data. It keeps the entries, so that a follower can begin at any time.
type feed struct {
	store *Store

	mu        sync.Mutex
	current   bool
	epoch     int32
	born      int64  // czxid of the log's node
	next      int32  // the record that is expected
	zxid      int64  // everything up to it was told
	number    uint64 // the greatest that followers were told
	entries   map[key]*lock.Entry
	queued    map[lock.Ref]int // how many entries are in each lock
	ended     []kept.End       // in the order in which they came
	folded    []folded         // of the records that are still there, to be moved to ended/
	followers map[*follower]struct{}

	ownMu sync.Mutex
	own   []written     // by this replica, known without being read
	fresh chan struct{} // there are new ones, or one came in turn
	ahead atomic.Bool   // the tail has some that are not in turn yet
}

// folded are the ends of one record.
type folded struct {
	n    int32
	ends []kept.End
}

func newFeed(s *Store) *feed {
	return &feed{store: s, entries: map[key]*lock.Entry{}, queued: map[lock.Ref]int{}, followers: map[*follower]struct{}{}, fresh: make(chan struct{}, 1)}
}

// follower is one Follow.
type follower struct {
	mu   sync.Mutex
	f    lock.Follower
	over bool
}

func (f *follower) call(what func(lock.Follower)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		what(f.f)
	}
}

// Follow implements service.Store. The first view is no older than the call.
func (s *Store) Follow(ctx context.Context, to lock.Follower) {
	f := &follower{f: to}
	for s.catchUp(ctx) != nil {
		if pause(ctx, guardInterval/4) != nil {
			return
		}
	}
	s.feed.add(f)
	<-ctx.Done()
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.followers, f)
}

// catchUp waits for the feed to have everything that there is now.
func (s *Store) catchUp(ctx context.Context) error {
	l, err := s.reads.get(ctx)
	if err != nil {
		return err
	}
	stat, err := s.barrierOn(ctx, l)
	if err == nil && !s.feed.reaches(ctx, stat.Mzxid) {
		err = errBehind
	}
	return err
}

// add begins with a view, now or when there is one.
func (f *feed) add(to *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[to] = struct{}{}
	if f.current {
		to.call(func(l lock.Follower) { l.Reset(f.view()) })
	}
}

// view returns everything. The caller holds mu.
func (f *feed) view() lock.Snapshot {
	v := lock.Snapshot{Number: f.number, Entries: (&snapshot{entries: f.entries}).sorted()}
	oldest := time.Now().Add(-endedRetention).UnixMilli()
	for _, e := range f.ended {
		if e.At >= oldest {
			v.Ended = append(v.Ended, e.Ended())
		}
	}
	slices.SortStableFunc(v.Ended, func(a, b lock.Ended) int { return a.At.Compare(b.At) })
	return v
}

// entry returns the entry as far as the feed knows, or nil.
func (f *feed) entry(k key) *lock.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries[k]
}

// queuePatience is how long a call waits for the feed before it reads itself.
const queuePatience = 200 * time.Millisecond

// queue returns a lock's entries as of a transaction that is no older than the
// call, unless the feed is late.
func (f *feed) queue(ctx context.Context, r lock.Ref) (entries []*lock.Entry, number uint64, ok bool) {
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if !current {
		return nil, 0, false
	}
	stat, err := f.store.barrier(ctx, f.store.calls)
	if err != nil {
		return nil, 0, false
	}
	for end := time.Now().Add(queuePatience); ; {
		f.mu.Lock()
		if f.current && f.zxid >= stat.Mzxid {
			defer f.mu.Unlock()
			return f.inLock(r), f.store.number(f.zxid), true
		}
		f.mu.Unlock()
		if time.Now().After(end) || pause(ctx, time.Millisecond) != nil {
			return nil, 0, false
		}
	}
}

// inLock returns the entries of a lock in order. The caller holds mu.
func (f *feed) inLock(r lock.Ref) []*lock.Entry {
	var entries []*lock.Entry
	for _, e := range f.entries {
		if claims(e, r) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, byNumber)
	return entries
}

// position returns the record that the feed expects next.
func (f *feed) position() int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// wrote tells the feed of a record of our own, which it so need not read. One that
// is in turn is applied at once; others are left to the tail.
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
	return f.current && w.epoch == f.epoch && w.n == f.next && f.applyLocked([]written{w}, 0) == nil
}

// refresh has the tail look at what it knows already.
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

// run follows until the store is closed, starting over after every doubt.
func (f *feed) run() {
	s := f.store
	for wait := firstPause; s.closing.Err() == nil; {
		start := time.Now()
		err := f.follow(s.closing)
		if s.closing.Err() != nil {
			return
		}
		f.lost(err)
		s.observe.Restarted()
		s.log.Warn("the feed is interrupted and starts over", "error", err)
		if time.Since(start) > 10*time.Second {
			wait = firstPause
		}
		if pause(s.closing, wait) != nil {
			return
		}
		wait = min(2*wait, time.Second)
	}
}

func (f *feed) lost(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.current {
		return
	}
	f.current = false
	for to := range f.followers {
		to.call(func(l lock.Follower) { l.Lost(unavailable(err, "follow the store", false)) })
	}
}

// follow lists on one connection and then follows the log on it, until something
// is wrong.
func (f *feed) follow(ctx context.Context) error {
	s := f.store
	l, err := s.reads.get(ctx)
	if err != nil {
		return err
	}
	if err := s.refreshMeta(ctx, l); err != nil {
		return err
	}
	if err := f.list(ctx, l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var guard sync.WaitGroup
	guard.Go(func() { f.guard(ctx, l) })
	defer guard.Wait()
	defer cancel()
	t := &tail{feed: f, link: l, ahead: map[int32]written{}, heads: make(chan head, 1), read: make(chan reading, 1)}
	defer t.reads.Wait()
	return t.run(ctx)
}

// list reads everything and begins anew with it.
func (f *feed) list(ctx context.Context, l *link) error {
	s := f.store
	f.takeOwn() // they will be in the list or in the log behind it
	snap, err := s.snapshot(ctx, l, nil)
	if err != nil {
		return err
	}
	ended, records, err := s.listEnded(ctx, l, snap)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch, f.born, f.next, f.zxid, f.entries = snap.epoch, snap.born, snap.next, snap.zxid, snap.entries
	f.ended, f.folded, f.current = ended, records, true
	f.queued = map[lock.Ref]int{}
	for _, e := range f.entries {
		f.count(e, 1)
	}
	f.number = max(f.number, s.number(snap.zxid))
	s.leases.reset(snap.entries)
	for to := range f.followers {
		to.call(func(l lock.Follower) { l.Reset(f.view()) })
	}
	return nil
}

// guard writes to the log now and then. A store that does not answer fails the
// connection, and so does a watch that does not fire.
func (f *feed) guard(ctx context.Context, l *link) {
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	for {
		stat, err := f.store.barrierOn(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.fail(err)
			return
		}
		f.store.leases.clock.tick()
		if !f.reaches(ctx, stat.Mzxid) {
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

// reaches waits for the feed to have told everything up to the zxid. It counts
// its looks instead of asking a clock, which runs on while the process is stopped.
func (f *feed) reaches(ctx context.Context, zxid int64) bool {
	const each = 20 * time.Millisecond
	start := time.Now()
	for looks := 0; ; looks++ {
		f.mu.Lock()
		there := f.zxid >= zxid
		f.mu.Unlock()
		f.store.observe.FeedLag(time.Since(start))
		if there || ctx.Err() != nil {
			return true
		}
		if looks > int(feedPatience/each) || pause(ctx, each) != nil {
			return ctx.Err() != nil
		}
	}
}

// apply tells the records, which follow each other, and that nothing else
// happened up to zxid. Some of our own may have been told meanwhile.
func (f *feed) apply(records []written, zxid int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applyLocked(slices.DeleteFunc(records, func(w written) bool { return w.n < f.next }), zxid)
}

func (f *feed) applyLocked(records []written, zxid int64) error {
	var changes []lock.Change
	for _, w := range records {
		if w.zxid <= f.zxid || w.n != f.next {
			return errGap
		}
		if w.record.Meta {
			return errMeta
		}
		f.next, f.zxid = w.n+1, w.zxid
		for _, c := range w.record.Changes {
			changes = f.change(changes, c, w)
		}
		ends := w.record.ends()
		f.ended = append(f.ended, ends...)
		f.folded = append(f.folded, folded{w.n, ends})
	}
	f.zxid = max(f.zxid, zxid)
	number := f.store.number(f.zxid)
	if number <= f.number && len(changes) == 0 {
		return nil
	}
	f.number = number
	for to := range f.followers {
		to.call(func(l lock.Follower) { l.Apply(number, changes) })
	}
	return nil
}

// change applies one change. An end that was recorded twice, as when somebody
// deleted nodes by hand, is told once.
func (f *feed) change(changes []lock.Change, c change, w written) []lock.Change {
	k, s := c.key(), f.store
	if c.Joined != nil {
		e := c.Joined.Entry(k.kept(), s.number(w.zxid))
		if was := f.entries[k]; was != nil {
			f.count(was, -1)
		}
		f.entries[k] = e
		f.count(e, 1)
		s.leases.joined(e, w.here)
		return append(changes, lock.Change{Joined: e})
	}
	e := f.entries[k]
	if e == nil || s.zxid(e.Number) != c.Czxid {
		return changes
	}
	delete(f.entries, k)
	f.count(e, -1)
	s.leases.left(k)
	return append(changes, lock.Change{Left: c.ID, Reason: c.Reason})
}

// count notes that an entry came or went. The caller holds mu.
func (f *feed) count(e *lock.Entry, by int) {
	for _, c := range e.Claims {
		r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if f.queued[r] += by; f.queued[r] == 0 {
			delete(f.queued, r)
		}
	}
}

// waits reports whether an entry that joins now will surely wait for another,
// as far as the feed knows.
func (f *feed) waits(e *lock.Entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range e.Claims {
		if c.Mode == lock.Exclusive && f.queued[lock.Ref{Tenant: e.Tenant, Name: c.Name}] > 0 {
			return true
		}
	}
	return false
}

var errMeta = errors.New("the fence floor or the trust in the store has changed")

// tail follows the log on one connection.
type tail struct {
	feed  *feed
	link  *link
	ahead map[int32]written // known, but not in turn yet
	heads chan head
	read  chan reading
	reads sync.WaitGroup

	foreign time.Time // when a record of another replica was read last
}

// head is the log's data and how long the log is, with a watch on that.
type head struct {
	data  []byte
	stat  *zk.Stat
	watch <-chan zk.Event
	err   error
}

type reading struct {
	records []written
	err     error
}

// run reads the head whenever it has changed, and the records that it is ahead.
// One of the two is under way or the watch is armed; our own writes come beside.
func (t *tail) run(ctx context.Context) error {
	t.readHead(ctx)
	var h head
	var watch <-chan zk.Event
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for {
		var err error
		select {
		case <-rest.C:
			t.readHead(ctx)
		case h = <-t.heads:
			if err = h.err; err == nil {
				err = t.seen(ctx, h, &watch)
			}
		case r := <-t.read:
			for _, w := range r.records {
				t.ahead[w.n] = w
			}
			if err = r.err; err == nil {
				watch = h.watch
				err = t.advance(h)
			}
		case <-watch:
			watch = nil
			if time.Since(t.foreign) > alone {
				rest.Reset(lull)
			} else {
				t.readHead(ctx)
			}
		case <-t.feed.fresh:
			t.takeOwn()
			err = t.advance(head{})
		case <-t.link.broken:
			err = t.link.why
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// takeOwn takes over what this replica has written.
func (t *tail) takeOwn() {
	next := t.feed.position()
	for _, w := range t.feed.takeOwn() {
		if w.epoch == t.feed.epoch && w.n >= next {
			t.ahead[w.n] = w
		}
	}
}

func (t *tail) readHead(ctx context.Context) {
	path := t.feed.store.root.log(t.feed.epoch)
	t.reads.Go(func() {
		h, err := do(ctx, t.link, func(c *zk.Conn) (h head, err error) {
			h.data, h.stat, h.watch, err = c.GetW(path)
			return h, err
		})
		switch {
		case err != nil:
		case string(h.data) == rotated:
			err = errRotated
		case h.stat.Czxid != t.feed.born:
			err = errAnotherLog
		}
		h.err = err
		t.heads <- h
	})
}

// seen takes over a head. Records before it that are not known are read first;
// the newest is often the head's own data.
func (t *tail) seen(ctx context.Context, h head, watch *<-chan zk.Event) error {
	t.takeOwn()
	next, length := t.feed.position(), created(h.stat)
	if _, own := t.ahead[length-1]; length > next && !own {
		t.foreign = time.Now()
	}
	if length > next && len(h.data) > 0 {
		var r record
		if err := json.Unmarshal(h.data, &r); err != nil {
			return err
		}
		t.ahead[length-1] = written{n: length - 1, zxid: h.stat.Mzxid, record: &r}
	}
	from, to := next, length
	for ; from < to; from++ {
		if _, known := t.ahead[from]; !known {
			break
		}
	}
	for ; to > from; to-- {
		if _, known := t.ahead[to-1]; !known {
			break
		}
	}
	if from == to {
		*watch = h.watch
		return t.advance(h)
	}
	epoch := t.feed.epoch
	t.reads.Go(func() {
		records, err := t.feed.store.records(ctx, t.link, epoch, from, to)
		t.read <- reading{records, err}
	})
	return nil
}

// advance applies the records that are in turn, and the head's position if all
// before it were.
func (t *tail) advance(h head) error {
	var ready []written
	t.feed.ahead.Store(true) // what comes in turn from here on is told of
	defer func() { t.feed.ahead.Store(len(t.ahead) > 0) }()
	next := t.feed.position()
	for w, ok := t.ahead[next]; ok; w, ok = t.ahead[next] {
		ready = append(ready, w)
		delete(t.ahead, next)
		next++
	}
	for n := range t.ahead {
		if n < next {
			delete(t.ahead, n)
		}
	}
	var zxid int64
	if h.stat != nil && next >= created(h.stat) {
		zxid = h.stat.Mzxid
	}
	if len(ready) == 0 && zxid == 0 {
		return nil
	}
	return t.feed.apply(ready, zxid)
}
