package outbox

import "time"

// Backlog is what is to be delivered and was not yet, to receivers that are sent something now: what
// waits for one that is paused or disabled is nobody's delay.
type Backlog struct {
	Deliveries int

	// Oldest is since when the first of them is due that does not wait because of its receiver: one that
	// fails, has asked for a pause, or has not answered what was sent before. Zero without any.
	Oldest time.Time

	// Behind is when the first event happened that the cursor has not passed, as it is neither delivered
	// nor kept, or as the cursor cannot be written; or since when an owner does nothing. Zero without any.
	Behind time.Time

	looked time.Time
}

// Backlog returns what this replica has to deliver, as it was at most some seconds ago.
func (o *Outbox) Backlog() (all Backlog) {
	for i := range o.backlogs {
		if b := o.backlogs[i].Load(); b != nil {
			all.Deliveries += b.Deliveries
			all.Oldest = first(all.Oldest, b.Oldest)
			all.Behind = first(all.Behind, b.behind(time.Now()))
		}
	}
	return all
}

// behind is since when events wait. An owner that has not looked for long is stuck since it did.
func (b *Backlog) behind(now time.Time) time.Time {
	if now.Sub(b.looked) < silentTime {
		return b.Behind
	}
	return first(b.Behind, b.looked)
}

// first returns the earlier one of two instants, of which the zero one is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tellBacklog makes known what is pending. It looks at all of that, so it does so now and then.
func (w *owner) tellBacklog(now time.Time) {
	if now.Sub(w.backlogAt) < backlogPause {
		return
	}
	w.backlogAt = now
	b := &Backlog{looked: now, Behind: w.behind()}
	for _, t := range w.targets.all {
		if t.sends() {
			b.Deliveries += len(t.pending)
			b.Oldest = first(b.Oldest, t.dueSince(now))
		}
	}
	w.owes.Store(b)
}

// dueSince is since when a delivery is due that does not wait because of its receiver; zero without any.
func (t *target) dueSince(now time.Time) (since time.Time) {
	for _, d := range t.pending {
		if due := d.progress.Due; !due.After(now) && !t.receiverOf(d).holdsUp(now) {
			since = first(since, due)
		}
	}
	return since
}

// behind is when the first event happened that the cursor has not passed. What is settled without a need to
// be written, as nobody is told of it any more, does not count.
func (w *owner) behind() time.Time {
	c := &w.cursor
	if !c.passed && !c.behind && !c.writing {
		c.since = w.window.oldest()
	}
	return first(c.since, w.window.oldest())
}
