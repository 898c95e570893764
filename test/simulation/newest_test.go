package simulation

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// newerAmong reports whether a later entry of the queue supersedes the one with the id.
func newerAmong(queue []*lock.Entry, id lock.ID, counts func(*lock.Entry) bool) bool {
	place := lock.Place(queue, id)
	return place >= 0 && queue[place].OnlyNewest && slices.ContainsFunc(
		queue[place+1:],
		func(e *lock.Entry) bool { return e.OnlyNewest && !e.Tries() && counts(e) },
	)
}

// superseded reports whether at any instant of the time a later entry superseded the one with the
// id and the claims.
func (t *truth) superseded(id lock.ID, claims []lock.Claim, from, to time.Duration) bool {
	return t.any(claims, from, to, func(_ lock.Claim, all []*lock.Entry) bool {
		return newerAmong(all, id, func(*lock.Entry) bool { return true })
	})
}

// checkSuperseded: only a waiting entry is superseded, by a later one that was there. An entry that
// came back with a copy of the store may be removed by a call from before.
func (t *truth) checkSuperseded(l *life) {
	if l.reason != lock.Superseded {
		return
	}
	if l.held != never {
		t.w.problem("%s at %d held, and ended as superseded", l.entry.ID, l.entry.Number)
	}
	if !l.ghost && !t.superseded(l.entry.ID, l.entry.Claims, l.joined, l.ended) {
		t.w.problem("%s at %d ended as superseded, by none", l.entry.ID, l.entry.Number)
	}
}

// outlived returns the entries that wait although a later one supersedes them, where requests
// wait on both for their answers.
func (t *truth) outlived() (ids []lock.ID) {
	attended := func(e *lock.Entry) bool {
		return slices.ContainsFunc(t.w.open, func(c *call) bool { return c.id == e.ID && !c.gone })
	}
	for name, q := range t.queues {
		for _, e := range q.now() {
			if attended(e) && !t.holds(e) && newerAmong(t.queues[name].now(), e.ID, attended) {
				ids = append(ids, e.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// newestOf writes entries of one lock that only wait while they are the newest, each with a
// request that waits for its answer.
func (d *doctored) newestOf(ids ...lock.ID) {
	for _, id := range ids {
		d.number++
		e := d.entry(id)
		e.Number, e.OnlyNewest, e.WaitUntil = d.number, true, time.Now().Add(time.Hour)
		d.truth.join(e, d.now())
		c := d.call(acquire, e)
		c.cancel = func() {}
		d.open = append(d.open, c)
	}
}
