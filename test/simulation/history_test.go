package simulation

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// How long everything may take to settle when nothing fails any more: every call is answered and
// every client has released what it has; nothing unknown is left; and leases of abandoned entries
// have ended.
const (
	answersWithin = time.Minute
	orphansWithin = 20 * time.Second
	// An async entry waits on by a clock that was changed, and then has a full lease:
	// longer where clocks were changed by more than a minute.
	leasesWithin = 6 * time.Minute
	waitsGo      = 5 * time.Second
)

// history plays all of it, and leaves what is wrong in problems.
func (w *world) history() {
	w.plan()
	w.play()
}

// plan draws what is going to happen besides what the clients do.
func (w *world) plan() {
	for range w.Faults {
		w.schedule(w.between(0, w.Length), w.fault)
	}
	if w.Restored {
		w.schedule(w.between(w.Length/4, w.Length*3/4), w.backup)
	}
	for range w.Closures {
		w.schedule(w.between(0, w.Length), w.operator.close)
	}
	w.schedule(w.between(0, 5*time.Second), func() { w.travel(nil) })
	if w.Webhooks {
		w.schedule(w.between(0, w.Length/4), w.subscribe)
	}
}

// play has it happen, then heals all, and checks what came of it.
func (w *world) play() {
	defer w.end()
	w.run(w.Length, w.failed)
	w.heal()
	w.schedule(waitsGo, w.watchWaits)
	w.finish("every call answered", answersWithin, func() bool {
		return !slices.ContainsFunc(w.clients, func(c *client) bool { return !c.done }) &&
			len(w.open) == 0
	})
	if w.run(w.now()+orphansWithin, w.failed) {
		return
	}
	w.checkOrphans()
	if !w.endWebhooks() {
		return
	}
	w.finish("no lease left", leasesWithin+w.turned, func() bool { return len(w.left()) == 0 })
	if w.failed() || w.Closures > 0 && w.run(w.now()+reread, w.failed) {
		return
	}
	w.probe()
	w.checkViews()
	w.told.check(w)
}

func (w *world) failed() bool { return len(w.problems) > 0 }

// finish goes on until it is done, which must be soon.
func (w *world) finish(what string, within time.Duration, done func() bool) {
	if !w.run(w.now()+within, func() bool { return w.failed() || done() }) {
		w.problem("not within %v: %s: %v, %v", within, what, w.open, w.server.Entries())
	}
}

// watchWaits looks again and again for waits that stand although nothing goes
// wrong.
func (w *world) watchWaits() {
	before, outlived := w.truth.standing(), w.truth.outlived()
	if len(before)+len(outlived) == 0 {
		if len(w.open) > 0 {
			w.schedule(time.Second, w.watchWaits)
		}
		return
	}
	w.schedule(waitsGo, func() {
		if len(before) > 0 && slices.Equal(before, w.truth.standing()) {
			w.problem("wait for each other: %v", before)
		}
		if len(outlived) > 0 && slices.Equal(outlived, w.truth.outlived()) {
			w.problem("wait, and a later request supersedes them: %v", outlived)
		}
		w.watchWaits()
	})
}

// left are the entries of clients.
func (w *world) left() []*lock.Entry {
	return slices.DeleteFunc(
		w.server.Entries(), func(e *lock.Entry) bool { return e.Tenant == lock.OwnTenant },
	)
}

// checkOrphans: what is left in the store is of clients that know of it and forgot,
// or can come back for it. A replica that crashed could not tidy up.
func (w *world) checkOrphans() {
	for _, e := range w.left() {
		c := w.truth.writer[e.ID]
		known := slices.ContainsFunc(w.truth.told, func(id lock.ID) bool { return id == e.ID })
		switch {
		case e.Recoverable() || known || w.truth.last(e.ID).ghost:
		case c != nil && c.life != c.replica.life:
		default:
			w.problem("%s at %d was left behind by %v", e.ID, e.Number, c)
		}
	}
}

// probe has every replica grant one lock, and all of them at once.
func (w *world) probe() {
	c := &client{w: w, n: -1, done: true}
	for _, r := range w.replicas {
		all := []lock.Claim{}
		for n := range w.Locks {
			all = append(all, lock.Claim{Name: w.lockName(n), Mode: lock.Exclusive})
		}
		for _, claims := range [][]lock.Claim{all[:1], all} {
			if w.try(c, r, claims); w.failed() {
				return
			}
		}
	}
}

// try has a replica grant free locks, and releases them.
func (w *world) try(c *client, r *replica, claims []lock.Claim) {
	a := c.wants()
	a.req.Claims, a.req.Set, a.req.IdempotencyKey = claims, len(claims) > 1, ""
	a.req.Callback, a.req.Any = nil, 0
	k := c.asking(a)
	k.client, k.replica = c, r
	c.send(k)
	w.finish("a probe is answered", 10*time.Second, func() bool { return len(w.open) == 0 })
	if w.failed() {
		return
	}
	if k.err != nil || !k.grant.Held {
		w.problem("%v: a free lock is not granted: %v", k, k.err)
		return
	}
	give := c.about(c.has[0], release)
	give.client, give.replica = c, r
	c.send(give)
	w.finish("a probe is released", 10*time.Second, func() bool { return len(w.open) == 0 })
}

// checkViews: in the end every replica sees what the store has.
func (w *world) checkViews() {
	w.run(w.now()+time.Second, w.failed)
	for _, r := range w.replicas {
		byMode, _ := r.svc.Locks.Count()
		for mode, n := range byMode {
			if n.Held+n.Waiting > 0 {
				w.problem("replica %d sees %+v of %s, and the store is empty", r.n, n, mode)
			}
		}
	}
}

// end closes everything. What does not end is left to the bubble to complain of.
func (w *world) end() {
	w.over = true
	for _, r := range w.replicas {
		w.hangUp(r)
		r.end()
	}
	w.run(w.now()+leasesWithin, func() bool {
		if len(w.open) > 0 {
			return false
		}
		for _, r := range w.replicas {
			for _, gone := range r.closed {
				select {
				case <-gone:
				default:
					return false
				}
			}
		}
		return true
	})
	w.server.Close()
	w.crew.dismiss()
}
