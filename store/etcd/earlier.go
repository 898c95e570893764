package etcd

import "time"

const (
	// maxResumed bounds how many revisions in the past a feed may begin. A watch from the past gets
	// 1 000 revisions every 100 ms. For each of these etcd reads all the rest, under a lock that
	// every write needs, so the cost grows with the square of the distance.
	maxResumed = 20_000

	// resumeTime bounds how long a feed may lag after it began in the past. Then it begins at the
	// present, because answers to requests matter more than old events.
	resumeTime = 30 * time.Second
)

// Resume makes the feed begin at an earlier number, so that it reports the events since then
// again. It does so only if the store still has that history and it is not too long. Call it
// before [Store.Watch].
func (s *Store) Resume(number uint64) { s.feed.resume.Store(number) }

// earlier returns the revision at which the feed begins, 0 for the present: where it was
// interrupted, or where [Store.Resume] asked. Events under another fence floor have other numbers
// and may belong to another past; in a store that lost its past they do.
func (g *gaps) earlier(newest int64, now time.Time) int64 {
	floor, number := g.feed.trust.Floor(), g.told
	if number == 0 {
		number = g.feed.resume.Load()
	} else if g.floor != floor {
		return 0
	}
	upTo := uint64(newest) + floor
	if g.feed.trust.Refusal() != nil || number <= floor || number >= upTo || upTo-number > maxResumed {
		return 0
	}
	if int64(number-floor) < g.feed.meta.Known().Position {
		return 0
	}
	if g.behind.IsZero() {
		g.setBehind(now)
	}
	if now.Sub(g.behind) > resumeTime {
		return 0
	}
	return int64(number - floor)
}

// beginNow makes the feed begin at the present. From the last reported number it would meet the
// same obstacle again.
func (g *gaps) beginNow() {
	g.told = 0
	g.feed.resume.Store(0)
}
