package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// historyTimeout is how long reading what happened before may keep back the view with which
	// a replica starts.
	historyTimeout = 10 * time.Second

	// interruptedTimeout is the same for a feed that was interrupted while requests rely on it,
	// and maxInterrupted how many changes it goes on with.
	interruptedTimeout = 5 * time.Second
	maxInterrupted     = 100_000

	// resumeTime is for how long a feed may try to go on where it was, over further interruptions.
	// Then it begins with what there is: that requests are answered matters more than what is told
	// of the past.
	resumeTime = 30 * time.Second
)

// Resume has the next [Store.Watch] begin at an earlier number, if the log still has all that
// happened since and that is not too much: so it is told again. Otherwise it begins with what
// there is.
func (s *Store) Resume(number uint64) { s.resume.Store(number) }

// teller tells followers of what happened before their views.
type teller struct {
	*reader
	chores  *connector // so that what is told at once does not wait for it
	archive *archive
}

// tellEarlier tells a follower what happened since what it was told last, and then all that was
// held back. If that cannot be done it begins with its view, and what happened until then is a
// gap.
func (t *teller) tellEarlier(ctx context.Context, f *follower, h *held) {
	since, behind := f.place()
	past, err := t.earlier(ctx, h, since, behind)
	switch {
	case err == nil:
		t.tellAll(ctx, f, h, past)
	case ctx.Err() != nil: // the follower, or its view, is over
		return
	default:
		t.log.Info("what happened before cannot be told; it begins with what there is", "since", since.number, "error", err)
		f.during(h, func() { f.reset(h.first, h.at) })
	}
	f.release(h)
}

// place returns where the follower is, and since when it is to be told of the past.
func (f *follower) place() (lastTold, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told, f.behind
}

// past is a view as of an earlier number, and what happened from there on.
type past struct {
	was store.Snapshot
	at  lastTold
	all []retold
}

// earlier returns what happened from where a follower is to its view.
func (t *teller) earlier(ctx context.Context, h *held, since lastTold, behind time.Time) (*past, error) {
	if err := since.leads(h.at); err != nil {
		return nil, err
	}
	limit := historyTimeout
	if since.placed {
		limit = interruptedTimeout
	}
	if time.Since(behind) > resumeTime {
		return nil, fmt.Errorf("%w: the feed has tried it for %v", errUntold, resumeTime)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	records, last, err := t.since(ctx, h.at, since.number)
	if err != nil {
		return nil, err
	}
	if err := since.follows(last); err != nil {
		return nil, err
	}
	return t.pastOf(h, since, records, last)
}

// since returns the records of what happened after a number, and the last one before. What interrupts a feed can break
// this connection too, and be found out later: then they are read over the next one.
func (t *teller) since(ctx context.Context, at lastTold, number uint64) (records []written, last written, err error) {
	for {
		l, err := t.chores.get(ctx)
		if err != nil {
			return nil, last, err
		}
		records, last, err = t.history(ctx, l, at.epoch, at.next, t.zxid(number))
		if !broke(err) || store.Pause(ctx, firstPause) != nil {
			return records, last, err
		}
	}
}

// pastOf returns what the records say happened before a view, after the last one that was told.
func (t *teller) pastOf(h *held, since lastTold, records []written, last written) (*past, error) {
	if since.placed && changesIn(records) > maxInterrupted {
		return nil, fmt.Errorf("%w: it is more than %d changes", errUntold, maxInterrupted)
	}
	entries, err := t.rewind(h.first.Entries, records, t.zxid(since.number))
	if err != nil {
		return nil, err
	}
	p := &past{at: h.at, was: store.Snapshot{Number: since.number, Newest: h.at.number, Entries: (&snapshot{entries: entries.byKey}).sorted()}}
	p.was.Notices = slices.DeleteFunc(slices.Clone(h.first.Notices), func(n *lock.Notice) bool { return n.Number > since.number })
	p.at.number, p.at.next, p.at.last = since.number, last.n+1, &last
	p.all = append(t.retell(entries, records, p.at), retold{to: h.at})
	switch {
	case t.trust.Floor() != h.at.floor:
		return nil, errMeta
	case since.placed && t.trust.Refusal() != nil:
		return nil, fmt.Errorf("%w: the store may have lost its past", errUntold)
	}
	return p, nil
}

func changesIn(records []written) (n int) {
	for _, w := range records {
		n += len(w.record.Changes)
	}
	return n
}

// tellAll tells an earlier view and what happened since, without haste.
func (t *teller) tellAll(ctx context.Context, f *follower, h *held, p *past) {
	f.during(h, func() { f.reset(p.was, p.at) })
	var pace store.Retelling
	for _, one := range p.all {
		f.during(h, func() { f.tell(one) })
		_ = pace.Pace(ctx, len(one.changes)) // what was read is told, also at the end
	}
}
