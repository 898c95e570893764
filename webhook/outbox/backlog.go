package outbox

import "time"

// Backlog is what is to be delivered and was not yet, to receivers that are sent something now: what
// waits for one that is paused or disabled is nobody's delay.
type Backlog struct {
	Deliveries int
	Oldest     time.Time // when the first of them was first to be sent; zero without any
}

// Backlog returns what this replica has to deliver, as it was at most some seconds ago.
func (o *Outbox) Backlog() (all Backlog) {
	for i := range o.backlogs {
		if b := o.backlogs[i].Load(); b != nil {
			all.Deliveries += b.Deliveries
			all.since(b.Oldest)
		}
	}
	return all
}

func (b *Backlog) since(at time.Time) {
	if !at.IsZero() && (b.Oldest.IsZero() || at.Before(b.Oldest)) {
		b.Oldest = at
	}
}

// tellBacklog makes known what is pending. It looks at all of that, so it does so now and then.
func (w *owner) tellBacklog(now time.Time) {
	if now.Sub(w.backlogAt) < backlogPause {
		return
	}
	w.backlogAt = now
	b := &Backlog{}
	for _, t := range w.targets.all {
		if !t.sends() {
			continue
		}
		b.Deliveries += len(t.pending)
		for _, d := range t.pending {
			b.since(d.made)
		}
	}
	w.owes.Store(b)
}
