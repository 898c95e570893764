package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// feed follows the store.
type feed struct {
	*keyspace
	*ends
	meta *engine.Meta

	// at is the revision that the feed has reached. behind asks the feed for progress, because other
	// programs' revisions bring no event.
	at     atomic.Int64
	behind chan struct{}
	resume atomic.Uint64 // the number at which the feed begins; 0 is the present
}

// Watch lists and then watches until ctx ends, as store.Store requires. It restarts after
// every gap. It never resumes a watch at the revision of a compaction, because the deletes in
// between would be lost (tikv/pd #11033).
func (fd *feed) Watch(ctx context.Context, f store.Watcher) {
	g := newGaps(fd, f)
	follow := func(ctx context.Context) error { return fd.followOnce(ctx, g) }
	store.Restart(ctx, follow, func(err error) {
		if errors.Is(err, errMetaChanged) {
			g.beginNow()
		}
		g.Lost(unavailable(err, "follow the store", false))
		fd.observe.Restarted()
		fd.log.Warn("the feed is interrupted and starts over", "error", err)
	})
}

// followOnce lists, then passes on events until something fails.
func (fd *feed) followOnce(ctx context.Context, f *gaps) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := fd.list(ctx, f)
	if err != nil {
		return err
	}
	w := fd.conn.watch(ctx, fd.prefix, string(prefixEnd(fd.prefix)), at+1)
	reasons := fd.readReasons(ctx, at)
	defer func() { cancel(); reasons.task.Wait() }()
	check := time.NewTicker(feedCheck)
	defer check.Stop()
	guard := newGuard(fd.keyspace, at, w.ask)
	guard.lags, guard.reached, guard.limit = fd.observe.FeedLag, f.reached, f.mayLag
	for {
		select {
		case m, ok := <-w.messages:
			if err := ended(ctx, m, ok); err != nil {
				return err
			}
			guard.saw(m.revision)
			if err := fd.hand(f, m); err != nil {
				return err
			}
			fd.at.Store(guard.at)
		case p := <-reasons.pages:
			if p.err != nil {
				return p.err
			}
			f.Recall(p.ends, p.complete)
		case <-fd.behind:
			w.ask()
		case <-check.C:
			if err := guard.check(ctx); err != nil {
				return err
			}
		}
	}
}

// ended returns why a watch ends with a message, or with none, which ok says.
func ended(ctx context.Context, m watchMessage, ok bool) error {
	if !ok {
		return errors.Join(ctx.Err(), errFeedEnded)
	}
	return m.err
}

var (
	errFeedEnded   = errors.New("the watch ended")
	errMetaChanged = errors.New("the store's own record has changed")
)

// hand translates a run of events and applies it. All numbers use the floor of the list. If the
// floor has risen, the feed must list again; this replica may know the new floor before its feed
// does.
func (fd *feed) hand(g *gaps, m watchMessage) error {
	var changes []store.Change
	if len(m.events) > 0 {
		var err error
		if changes, err = fd.changes(m.events); err != nil {
			return err
		}
	}
	if fd.trust.Floor() != g.floor {
		return errMetaChanged
	}
	g.Apply(uint64(m.revision)+g.floor, changes)
	return nil
}

// departure is an entry that left. The keys of a set leave at one revision and count as one.
type departure struct {
	key      store.Key // of its home
	revision int64
	change   int // its index among the changes
	recorded bool

	withdrawn bool // its mark was removed before it
}

// departures are the entries that left in a run of events. An id can appear more than once: after
// a withdrawal its key can be used again.
type departures struct {
	all    []*departure
	narrow map[lock.ID]int64      // the revisions at which entries left some of their queues
	last   map[lock.ID]*departure // without the ids that joined again
	ends   map[lock.ID]recordedEnd
	marked map[markGone]bool // the removed marks
}

// markGone names the removal of a key's mark: with its entry, unless the mark belongs to an
// earlier entry.
type markGone struct {
	id       lock.ID
	revision int64
}

type recordedEnd struct {
	reason   lock.Reason
	note     *lock.Note
	revision int64
}

// changes translates events. A removal and its reason are in one transaction, hence in one run of
// events, in either order. A reason that was not recorded with the removal comes later, perhaps
// in the same run.
func (fd *feed) changes(events []*mvccpb.Event) ([]store.Change, error) {
	changes := make([]store.Change, 0, len(events))
	var d departures
	for _, ev := range events {
		rest := ev.Kv.Key[len(fd.prefix):]
		put := ev.Type == mvccpb.Event_PUT
		switch {
		case hasPrefix(rest, entriesDir) && put:
			e := fd.primaryAt(ev.Kv)
			if spoilt := e != nil && e.Opaque && narrowed(ev.Kv); e != nil && !spoilt {
				changes = append(changes, d.put(e, ev.Kv, fd.number(ev.Kv.ModRevision)))
			}
		case hasPrefix(rest, entriesDir):
			k, ok := fd.splitKey(ev.Kv.Key)
			if ok && d.left(k, ev.Kv.ModRevision, changes) {
				changes = append(changes, store.Change{
					Number: fd.number(ev.Kv.ModRevision), Left: k.ID,
					Reason: d.ends[k.ID].reason, Note: d.noteAt(k.ID, ev.Kv.ModRevision),
				})
			}
		case hasPrefix(rest, endedDir) && put:
			for _, e := range fd.endsAt(ev.Kv) {
				d.ended(e, ev.Kv.ModRevision, changes)
				fd.unrecorded.recorded(e)
			}
		case hasPrefix(rest, keysDir) && !put:
			d.unmarked(string(rest[len(keysDir):]), ev.Kv.ModRevision)
		case string(rest) == engine.MetaKey().Name:
			return nil, errMetaChanged
		}
	}
	for _, left := range d.all {
		if !left.recorded {
			marked := d.marked[markGone{left.key.ID, left.revision}]
			changes[left.change].Reason = fd.reasonOf(left, marked)
		} else {
			fd.unrecordedReasons.Delete(left.key.ID)
		}
	}
	return changes, nil
}

// put returns the change of an entry that was put: it joined, or the second put narrowed it.
func (d *departures) put(e *lock.Entry, kv *mvccpb.KeyValue, number uint64) store.Change {
	if !narrowed(kv) {
		delete(d.last, e.ID)
		return store.Change{Number: number, Joined: e}
	}
	if d.narrow == nil {
		d.narrow = map[lock.ID]int64{}
	}
	d.narrow[e.ID] = kv.ModRevision
	return store.Change{Number: number, Narrowed: e}
}

// left records a removed key. It reports whether the key is the first of its entry. The keys that
// go as an entry is narrowed are no end; they go after the put. An expired
// lease removes the keys in order, an entry before its mark. Only a withdrawal without space for
// its record removes the mark first.
func (d *departures) left(k store.Key, revision int64, changes []store.Change) bool {
	if d.narrow[k.ID] == revision {
		return false
	}
	if last := d.last[k.ID]; last != nil && last.revision == revision {
		if k.Lock < last.key.Lock && last.key.Lock != lock.PoolHome || k.Lock == lock.PoolHome {
			last.key.Lock = k.Lock
		}
		return false
	}
	if d.last == nil {
		d.last = map[lock.ID]*departure{}
	}
	left := &departure{
		key: k, revision: revision, change: len(changes), recorded: d.ends[k.ID].revision == revision,
	}
	left.withdrawn = d.marked[markGone{k.ID, revision}]
	d.last[k.ID], d.all = left, append(d.all, left)
	return true
}

// ended handles a record of an end: of the last entry with the id, or of one that leaves at the
// same revision.
func (d *departures) ended(e store.End, revision int64, changes []store.Change) {
	if d.ends == nil {
		d.ends = map[lock.ID]recordedEnd{}
	}
	d.ends[e.ID] = recordedEnd{e.Reason, (*lock.Note)(e.Note), revision}
	if left := d.last[e.ID]; left != nil && !left.recorded {
		changes[left.change].Reason, left.recorded = e.Reason, true
		changes[left.change].Note = d.noteAt(e.ID, left.revision)
	}
}

// noteAt returns the operator's note on an end, which is in the same write.
func (d *departures) noteAt(id lock.ID, revision int64) *lock.Note {
	if end := d.ends[id]; end.revision == revision {
		return end.note
	}
	return nil
}

func (d *departures) unmarked(rest string, revision int64) {
	id, ok := splitMarkKey(rest)
	if !ok {
		return
	}
	if d.marked == nil {
		d.marked = map[markGone]bool{}
	}
	d.marked[markGone{id, revision}] = true
}

func hasPrefix(key []byte, prefix string) bool {
	return len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
}

// reasonOf returns why an entry left without a recorded reason, and schedules it for recording.
func (x *ends) reasonOf(d *departure, marked bool) lock.Reason {
	why := x.unsaid(d.key.ID)
	if d.withdrawn && why == lock.Expired {
		why = lock.Withdrawn // by another replica
	}
	x.unrecorded.saw(d.key, d.revision, why, marked)
	return why
}

// unsaid returns the reason of an end for which the store has none.
func (x *ends) unsaid(id lock.ID) lock.Reason {
	if own, ok := x.unrecordedReasons.LoadAndDelete(id); ok {
		return own.(lock.Reason)
	}
	return lock.Expired
}
