package etcd

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// gaps is a follower that records the expiries in a gap of its feed. etcd removes the entries of
// an expired lease, and their marks, without a record. A change of leader interrupts the feeds of
// all replicas at once, so none of them sees the removal.
type gaps struct {
	store.Watcher
	feed    *feed
	floor   uint64            // the floor of all the feed's numbers
	there   map[lock.ID]keyed // the entries with a key
	missing map[lock.ID]keyed // entries that left for a reason that is still unknown
	told    uint64            // the number up to which the feed was passed on; 0 before it begins
	// since when the feed begins, or tries to begin, in the past; zero once it has caught up
	behind time.Time
	whole  time.Time // when the feed was last known to be complete
	since  time.Time // start of the gap; zero without a gap
}

// keyed is an entry with a key. Its number uses the floor that the feed had.
type keyed struct {
	entry    *lock.Entry
	position int64
}

func newGaps(f *feed, w store.Watcher) *gaps {
	return &gaps{Watcher: w, feed: f, there: map[lock.ID]keyed{}, missing: map[lock.ID]keyed{}}
}

// Lost implements store.Watcher. A paused replica hears of a gap after the gap is over.
func (g *gaps) Lost(err error) {
	if g.since.IsZero() {
		g.since = g.whole
	}
	g.Watcher.Lost(err)
}

// mayLag returns how long the watch may lag behind the store.
func (g *gaps) mayLag() time.Duration {
	if g.behind.IsZero() {
		return feedTimeout
	}
	return resumeTime
}

// reached records that the feed had everything up to the instant.
func (g *gaps) reached(at time.Time) {
	if at.After(g.whole) {
		g.whole = at
		g.setBehind(time.Time{})
	}
}

// setBehind records since when the feed lags. An end without a reason may have its record further
// on, so nothing is recorded until the feed has caught up.
func (g *gaps) setBehind(since time.Time) {
	g.behind = since
	g.feed.unrecorded.hold(!since.IsZero())
}

// Reset implements store.Watcher.
func (g *gaps) Reset(s store.Snapshot) {
	g.told = s.Number
	if g.behind.IsZero() {
		g.reached(time.Now())
	}
	before := g.there
	g.there = map[lock.ID]keyed{}
	for _, e := range s.Entries {
		g.joined(e)
	}
	for id, e := range before {
		if _, still := g.there[id]; !still {
			g.missing[id] = e
		}
	}
	g.forgetOwn(s.Entries)
	g.Watcher.Reset(s)
}

// forgetOwn drops the reasons in this replica's memory of entries that left in a gap, because the
// feed will not report them. It keeps those of entries with a key, which may still be needed. A
// feed that begins in the past will still report them.
func (g *gaps) forgetOwn(there []*lock.Entry) {
	if !g.behind.IsZero() {
		return
	}
	gone := map[lock.ID]bool{}
	g.feed.unrecordedReasons.Range(func(id, _ any) bool {
		_, open := g.missing[id.(lock.ID)]
		gone[id.(lock.ID)] = !open
		return true
	})
	if len(gone) == 0 {
		return
	}
	for _, e := range there {
		delete(gone, e.ID)
	}
	for id, forget := range gone {
		if forget {
			g.feed.unrecordedReasons.Delete(id)
		}
	}
}

// Apply implements store.Watcher.
func (g *gaps) Apply(upTo uint64, changes []store.Change) {
	for _, c := range changes {
		switch {
		case c.Joined != nil:
			g.joined(c.Joined)
		case c.Narrowed != nil:
			g.joined(c.Narrowed)
		default:
			delete(g.there, c.Left)
		}
	}
	g.told = max(g.told, upTo)
	g.Watcher.Apply(upTo, changes)
}

func (g *gaps) joined(e *lock.Entry) {
	if e.Resumable() {
		g.there[e.ID] = keyed{e, int64(e.Number - g.floor)}
		delete(g.missing, e.ID)
	}
}

// Recall implements store.Watcher. After all reasons have been reported, an entry without one
// expired, or this replica has its reason in memory.
func (g *gaps) Recall(ends []store.Ended, complete bool) {
	for _, e := range ends {
		if of, gone := g.missing[e.ID]; gone && of.endedBy(e) {
			delete(g.missing, e.ID)
			g.feed.unrecordedReasons.Delete(e.ID)
		}
	}
	if complete {
		ends = append(ends, g.unexplained()...)
	}
	g.Watcher.Recall(ends, complete)
}

// endedBy reports whether an end is that of the entry, and not of an earlier, withdrawn entry of
// its key. An end without a recorded position is never one of those.
func (k keyed) endedBy(e store.Ended) bool {
	at := e.Was.Position()
	return at == k.position || at == 0
}

func (g *gaps) unexplained() (ends []store.Ended) {
	known := store.Age(g.since) <= store.LongestGap
	for id, k := range g.missing {
		if known {
			ends = append(ends, g.feed.missed(k))
		}
		g.feed.unrecordedReasons.Delete(id)
	}
	clear(g.missing)
	g.since = time.Time{}
	return ends
}

// missed records the end of an entry that no feed has reported.
func (x *ends) missed(k keyed) store.Ended {
	e := k.entry
	end := store.End{
		ID: e.ID, Tenant: e.Tenant, Reason: x.unsaid(e.ID), At: time.Now().UnixMilli(),
		Was: x.pasts.Of(e, k.position),
	}
	x.unrecorded.add(
		unrecordedEnd{End: end, marked: true, key: store.Key{Tenant: e.Tenant, Lock: e.Home(), ID: e.ID}},
	)
	return end.Ended(x.trust.Floor())
}
