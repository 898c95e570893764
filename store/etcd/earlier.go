package etcd

import "time"

const (
	// maxResumed is how many revisions in the past a feed may begin. A watch from the past gets
	// 1 000 revisions every 100 ms, and etcd reads all the rest for each of these, under a lock
	// that every write needs: what it costs grows with the square of the distance.
	maxResumed = 20_000

	// resumeTime is for how long a feed may be behind after it began in the past. Then it begins
	// with what there is: answers to requests matter more than events of the past.
	resumeTime = 30 * time.Second
)

// Resume has the feed begin at an earlier number, so that it reports again what happened since,
// if the store still has that history and it is not too long. Call it before [Store.Watch].
func (fd *feed) Resume(number uint64) { fd.resume.Store(number) }

// earlier returns the revision at which the feed is to begin, 0 for now: where it was interrupted,
// or is to be resumed. What was told with another fence floor, as before this one was given, has
// other numbers and may be another past; in a store that lost its own past it is.
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
	if int64(number-floor) < g.feed.meta.floorGiven() {
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

// beginNow has the feed begin with what there is: after what was told it would meet again what
// made it start over.
func (g *gaps) beginNow() {
	g.told = 0
	g.feed.resume.Store(0)
}
