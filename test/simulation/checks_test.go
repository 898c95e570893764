package simulation

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// check holds an answer against what really happened.
func (t *truth) check(c *call) {
	var e *lock.Error
	switch {
	case c.err == nil && c.grant == nil:
		t.checkReleased(c)
	case c.err == nil:
		t.checkGrant(c, c.grant)
	case errors.As(c.err, &e):
		t.checkRefusal(c, e)
	}
}

// checkGrant checks answers with an entry: it exists, and it holds or waits as reported.
func (t *truth) checkGrant(c *call, g *service.Grant) {
	l := t.at(g.Entry.ID, g.Entry.Number)
	if l == nil {
		t.w.problem("%v: was told of %s at %d, which never was", c, g.Entry.ID, g.Entry.Number)
		return
	}
	now := t.w.now()
	if l.ended < c.began {
		t.w.problem("%v: was told of %s, which had ended before, as %s", c, l.entry.ID, l.reason)
	}
	if !g.Held {
		if l.held < c.began && l.ended == never {
			t.w.problem("%v: was told that %s waits, which held all the time", c, l.entry.ID)
		}
		return
	}
	if l.held > now {
		t.w.problem("%v: was told that %s holds, which did not", c, l.entry.ID)
	}
	l.told = true
	t.w.judge.tells(g.Entry)
	if !slices.Equal(g.Entry.Claims, l.entry.Claims) {
		t.w.problem(
			"%v: was told that %s holds %v, not %v", c, l.entry.ID, g.Entry.Claims, l.entry.Claims,
		)
	}
	if g.Asked != nil && !t.anyAsks(g.Entry) {
		t.w.problem("%v: was told that somebody asks for the lock, which nobody ever did", c)
	}
	t.checkTime(c, g, l)
	sure := now + g.ExpiresAt.Sub(c.replica.wall())
	if c.kind == renew {
		sure = min(sure, c.began+g.Entry.TTL)
	}
	if c.life == c.replica.life && !c.jumped {
		l.sureTill = max(l.sureTill, sure)
	}
	t.checkEnd(l)
	t.checkExclusion(l)
	t.checkOneOfKey(g.Entry.ID)
}

// checkReleased: an answer that an entry was released is about one that was.
func (t *truth) checkReleased(c *call) {
	l := t.at(c.id, c.number)
	if l == nil || l.ended == never || l.reason != lock.Released && !t.undone(c.id) {
		t.w.problem("%v: was told that %s is released, and it was not", c, c.id)
	}
}

// anyAsks reports whether anybody ever asked for a lock of the entry.
func (t *truth) anyAsks(e *lock.Entry) bool {
	for id, lives := range t.lives {
		shared := slices.ContainsFunc(e.Claims, func(c lock.Claim) bool {
			return slices.ContainsFunc(
				lives[0].wanted, func(other lock.Claim) bool { return other.Name == c.Name },
			)
		})
		if id != e.ID && shared &&
			slices.ContainsFunc(lives, func(l *life) bool { return l.entry.AskWithin != nil }) {
			return true
		}
	}
	return false
}

// checkEnd checks entries that were reported to hold: only their clients remove them, and they
// last as long as the answer said.
func (t *truth) checkEnd(l *life) {
	if !l.told || l.ended == never {
		return
	}
	switch l.reason {
	case lock.Withdrawn, lock.WaitTimeout, lock.Deadlocked, lock.Mismatched, lock.Superseded:
		t.w.problem("%s at %d was granted, and ended as %s", l.entry.ID, l.entry.Number, l.reason)
	case lock.Expired:
		if l.ended < l.sureTill {
			t.w.problem(
				"%s at %d expired at %v, and was sure to last till %v", l.entry.ID, l.entry.Number, l.ended,
				l.sureTill,
			)
		}
	}
}

// checkAttended: while a request waits on an entry, its replica keeps it alive.
func (t *truth) checkAttended(l *life) {
	if l.reason != lock.Expired || !t.w.healed || l.ended < t.w.since+l.entry.TTL {
		return
	}
	for _, c := range t.w.open {
		if c.id == l.entry.ID && c.kind != renew && c.kind != release && !c.gone &&
			c.began < l.ended-l.entry.TTL {
			t.w.problem("%s at %d expired while %v waited on it", l.entry.ID, l.entry.Number, c)
		}
	}
}

// checkKept: while an async entry waits, the replicas keep it alive.
func (t *truth) checkKept(l *life) {
	if l.entry.Async && l.reason == lock.Expired && l.held == never && t.w.healed &&
		l.ended > t.w.since+l.entry.TTL {
		t.w.problem("%s at %d expired while it waited", l.entry.ID, l.entry.Number)
	}
}

// checkTime: a granted client has all of its time, except what the answer needs when nothing
// fails.
func (t *truth) checkTime(c *call, g *service.Grant, l *life) {
	left := g.ExpiresAt.Sub(c.replica.wall())
	if c.kind == acquire && !g.Entry.Async && t.w.healed && l.held > t.w.since+5*time.Second &&
		left < g.Entry.TTL-time.Second {
		t.w.problem("%v: was granted for %v, of %v", c, left, g.Entry.TTL)
	}
}

// checkOneOfKey: of all entries that an idempotency key ever had, one at most was
// granted, but for those that came before an expiry was recorded.
func (t *truth) checkOneOfKey(id lock.ID) {
	granted := slices.DeleteFunc(
		slices.Clone(t.lives[id]), func(l *life) bool { return !l.told || l.undone },
	)
	for i, l := range granted[min(1, len(granted)):] {
		if before := granted[i]; !t.countsAsNew(before, l) {
			t.w.problem(
				"one idempotency key was granted more than once: %s at %d and %d", id, before.entry.Number,
				l.entry.Number,
			)
		}
	}
}

// checkLate: after the entry of a key has existed and has gone, no earlier attempt writes another
// one, which no replica would serve.
func (t *truth) checkLate(l *life) {
	by := t.writing[l.entry.ID]
	if by == nil || !l.entry.Resumable() {
		return
	}
	for _, before := range t.lives[l.entry.ID] {
		since := before != l && before.joined > by.sent && !before.ghost && !before.undone
		if since && !t.countsAsNew(before, l) {
			t.w.problem(
				"%s was written at %d as replica %d asked at %v, after it was there at %d and went as %s",
				l.entry.ID, l.entry.Number, by.replica, by.sent, before.entry.Number, before.reason,
			)
			return
		}
	}
}

// recorded returns when the end of l is in the store, which may be a while after an expiry.
func (t *truth) recorded(l *life) time.Duration {
	if l.reason == lock.Expired {
		return l.ended + t.w.ExpiryRecord
	}
	return l.ended
}

// unrecorded reports whether an entry of a key was written between the expiry of an
// earlier one and the record of that, when the key counts as new.
func (t *truth) unrecorded(before, l *life) bool {
	return before.reason == lock.Expired && l.joined > before.ended && l.joined <= t.recorded(before)
}

// countsAsNew reports whether the key of an earlier entry was in use again before its
// expiry was recorded, by this entry or by one before it: then nothing is left of it.
func (t *truth) countsAsNew(before, l *life) bool {
	return slices.ContainsFunc(t.lives[l.entry.ID], func(next *life) bool {
		return next.joined <= l.joined && t.unrecorded(before, next)
	})
}

// mistaken reports whether the reason may be that of a later entry of the key: one that
// was written because l was withdrawn, or before its expiry was recorded. Reasons are
// remembered by id.
func (t *truth) mistaken(l *life, why lock.Reason) bool {
	lives := t.lives[l.entry.ID]
	reused := l.reason == lock.Withdrawn ||
		slices.ContainsFunc(lives, func(later *life) bool { return t.unrecorded(l, later) })
	return reused &&
		slices.ContainsFunc(
			lives, func(later *life) bool { return later.joined > l.ended && later.reason == why },
		)
}

// checkRefusal is about answers that something is not so.
func (t *truth) checkRefusal(c *call, e *lock.Error) {
	now := t.w.now()
	switch e.Code {
	case lock.Lost:
		t.checkLost(c, e.Reason)
	case lock.Held:
		if !t.taken(c, now) {
			t.w.problem("%v: was told that the lock is held, which was free all the time", c)
		}
		t.checkGone(c, e)
	case lock.TimedOut:
		if !t.taken(c, now) {
			t.w.problem("%v: timed out, and the lock was free all the time", c)
		}
		t.checkGone(c, e)
	case lock.ModeMismatch:
		if !t.clashes(c.id, c.claims, t.joinedOr(c), now) {
			t.w.problem("%v: was told that modes clash, which they never did", c)
		}
	case lock.Deadlock:
		t.checkDeadlock(c, e)
	case lock.NotNewest:
		id := cmp.Or(c.id, c.asked.id) // a request with the same key may have written it
		if l := t.last(id); l == nil || !t.superseded(id, c.claims, l.joined, now) {
			t.w.problem("%v: was told that a later request waits, and none did", c)
		}
	case lock.IdempotencyMismatch:
		if !c.altered {
			t.w.problem("%v: was told that its key was used with other parameters", c)
		}
	case lock.Closed:
		t.w.operator.checkClosed(c)
	case lock.StoreUnavailable, lock.FenceFloorRequired, lock.Draining:
	default:
		t.w.problem("%v: an answer that cannot be: %v", c, e)
	}
}

// taken reports whether what a call wants was not free at any instant since it began.
func (t *truth) taken(c *call, now time.Duration) bool {
	if some := c.asked.req.Any; some > 0 {
		return t.full(c.id, c.claims, some, c.began, now)
	}
	return t.busy(c.id, c.claims, c.began, now)
}

// checkGone: a client whose wait is over has no entry left. A late attempt of the same call may
// have written it again; it is removed like other remains.
func (t *truth) checkGone(c *call, e *lock.Error) {
	lives := t.lives[c.id]
	if len(lives) == 0 || e.Code != lock.TimedOut {
		return
	}
	l := lives[len(lives)-1]
	check := func() {
		if l.ended == never {
			t.w.problem("%v: timed out, and %s at %d is still there", c, c.id, l.entry.Number)
		}
	}
	if late := len(lives) > 1 && lives[len(lives)-2].ended > c.began; late {
		t.w.schedule(5*time.Second, check)
		return
	}
	check()
}

func (t *truth) joinedOr(c *call) time.Duration {
	if l := t.last(c.id); l != nil {
		return min(l.joined, c.began)
	}
	return c.began
}

// checkLost: the entry has ended, for the reported reason.
func (t *truth) checkLost(c *call, why lock.Reason) {
	if c.kind != acquire {
		switch l := t.at(c.id, c.number); {
		case l == nil:
			t.w.problem("%v: a token for an entry that never was", c)
		case l.ended == never:
			t.w.problem("%v: was told that the entry is lost (%s), which is there", c, why)
		case l.reason != why && why != lock.Unknown && !(why == lock.Expired &&
			l.reason == lock.Withdrawn) && !t.mistaken(l, why) && !t.undone(c.id):
			t.w.problem("%v: was told that the entry ended as %s, and it was %s", c, why, l.reason)
		}
		return
	}
	if c.id == "" {
		return // no client ever learnt the id of the key
	}
	fits := t.undone(c.id)
	for _, l := range t.lives[c.id] {
		if l.ended == never && l.joined < c.began {
			t.w.problem("%v: was told that the key is used up (%s), and its entry is there", c, why)
		}
		fits = fits || l.ended != never && (l.reason == why || why == lock.Unknown)
	}
	if !fits {
		t.w.problem("%v: was told that the key's entry ended as %s, and none did", c, why)
	}
}
