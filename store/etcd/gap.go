package etcd

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// gaps is a follower that puts down the expiries which fell into a gap of its feed. etcd
// removes the entries of a dead lease without a word, and the mark of a key with its entry.
// A change of leader interrupts the feeds of all replicas at once, so that none of them
// sees it happen.
type gaps struct {
	store.Watcher
	feed    *feed
	floor   uint64            // by which all that the feed tells has its numbers
	there   map[lock.ID]keyed // the entries with a key
	missing map[lock.ID]keyed // entries that went for a reason not known yet
	told    uint64            // the number up to which the feed was handed on; 0 if it has not begun
	// since when it begins, or tries to begin, in the past; zero if it has caught up
	behind time.Time
	whole  time.Time // when the feed is known to have had everything
	since  time.Time // of the gap; zero if there is none
}

// keyed is an entry with a key. Its number is by the floor that the feed had.
type keyed struct {
	entry    *lock.Entry
	position int64
}

func newGaps(f *feed, w store.Watcher) *gaps {
	return &gaps{
		Watcher: w, feed: f, there: map[lock.ID]keyed{}, missing: map[lock.ID]keyed{},
	}
}

// Lost implements store.Watcher. A replica that stood still hears of a gap when it is
// over.
func (g *gaps) Lost(err error) {
	if g.since.IsZero() {
		g.since = g.whole
	}
	g.Watcher.Lost(err)
}

// mayLag returns for how long the watch may stay behind the store.
func (g *gaps) mayLag() time.Duration {
	if g.behind.IsZero() {
		return feedTimeout
	}
	return resumeTime
}

// reached says that the feed has had everything that there was at the time.
func (g *gaps) reached(at time.Time) {
	if at.After(g.whole) {
		g.whole = at
		g.setBehind(time.Time{})
	}
}

// setBehind notes since when the feed is behind. What it tells to have ended may be on record
// further on, so that nothing is recorded until it has caught up.
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

// forgetOwn forgets the reasons in this replica's memory of entries that went in a gap, and
// so are not told to have gone. Of those with a key they may be asked for. A feed that begins
// in the past is yet to tell what went since.
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
		if c.Joined != nil {
			g.joined(c.Joined)
		} else {
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

// Recall implements store.Watcher. When all reasons are told, those of which there is
// none expired, or this replica has the reason in memory.
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

// endedBy reports whether an end is that of the entry, and not of an earlier one of its
// key that was withdrawn. Of ends whose place is not remembered there is none such.
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

// missed puts down the end of an entry that no feed has told.
func (x *ends) missed(k keyed) store.Ended {
	e := k.entry
	end := store.End{
		ID: e.ID, Tenant: e.Tenant, Reason: x.unsaid(e.ID), At: time.Now().UnixMilli(),
		Was: x.pasts.Of(e, k.position),
	}
	x.unrecorded.add(
		unrecordedEnd{End: end, marked: true, key: store.Key{Tenant: e.Tenant, Lock: e.Name(), ID: e.ID}},
	)
	return end.Ended(x.trust.Floor())
}
