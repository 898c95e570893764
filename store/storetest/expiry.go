package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func expiryCases() []testCase {
	return []testCase{
		{name: "expiry/neither early nor late", run: expiryOnTime},
		{name: "expiry/a new entry has a whole lease", run: expiryWholeLease},
		{name: "expiry/entries do not share a lease", run: expiryOwnLease},
		{name: "expiry/a set goes from all queues at once and is told once", run: expirySets},
	}
}

// leased is an entry whose lease started between two instants.
type leased struct {
	*lock.Entry
	from, to time.Time
}

// lease enqueues e with a short TTL through client A.
func (t *trial) lease(e *lock.Entry, ttl time.Duration) leased {
	t.Helper()
	e.TTL = ttl
	from := time.Now()
	placed := t.enqueue(t.A, e)
	return leased{placed, from, time.Now()}
}

// renew restarts the lease of l, unless it may be over: where calls take long, it can end
// before the next renewal arrives.
func (t *trial) renew(s store.Store, l *leased) {
	t.Helper()
	from := time.Now()
	err := s.Renew(t.ctx, l.Entry)
	switch over := time.Since(l.from) >= l.TTL; {
	case err == nil:
		l.from, l.to = from, time.Now()
	case over:
		t.wantLost("Renew of what may have expired", err)
	default:
		t.Fatalf("Renew %v after the last one: %v", time.Since(l.from), err)
	}
}

// wantExpiry waits until the feed tells that the entry expired, and judges the
// time.
func (t *trial) wantExpiry(f *feed, l leased) {
	t.Helper()
	latest := l.to.Add(l.TTL + t.Late)
	if !f.went(time.Until(latest), l.ID) {
		t.Errorf("%v: still there %v after the end of its lease of %v", l.Claims, t.Late, l.TTL)
		return
	}
	v := f.state()
	n, d := v.departures(l.ID)
	if n == 0 && !v.whole() {
		return
	}
	if n != 1 || d.Reason != lock.Expired {
		t.Errorf("%v: left %d times, with reason %q, want once, %q", l.Claims, n, d.Reason, lock.Expired)
	}
	if late := d.at.Sub(latest); late > 0 {
		t.Errorf("%v: expired %v too late", l.Claims, late)
	}
	if early := l.from.Add(l.TTL).Sub(d.at); early > 0 {
		t.Errorf("%v: expired %v before the end of its lease of %v", l.Claims, early, l.TTL)
	}
}

// whileThere repeats step until the feed tells that the entries went, or all of them
// should have gone.
func (t *trial) whileThere(f *feed, all []leased, step func()) {
	end, every := time.Now().Add(t.MinTTL+t.Late), t.MinTTL/5
	for _, l := range all {
		for !f.went(every, l.ID) && time.Now().Before(end) {
			step()
		}
	}
}

// expiryOnTime lets entries of all kinds expire: alone, with a TTL that is no
// whole number of seconds, in a set, behind another, and many at once.
func expiryOnTime(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	all := []leased{
		t.lease(t.draft("plain"), t.MinTTL), t.lease(t.draft("fraction"), t.MinTTL+t.MinTTL*3/10),
		t.lease(t.draft("set-1", "set-2"), t.MinTTL), t.lease(t.draft("plain"), t.MinTTL+t.MinTTL/2),
	}
	heir := t.enqueue(t.B, t.draft("plain"))
	all = append(all, t.leaseMany(30)...)
	for _, l := range all {
		for _, f := range feeds {
			t.wantExpiry(f, l)
		}
	}
	for _, l := range all[:4] {
		t.wantLost("Renew of an expired entry", t.A.Renew(t.ctx, l.Entry))
		t.wantLost("Remove of an expired entry", t.B.Remove(t.ctx, l.Entry, lock.Released))
		if v := feeds[0].state(); !v.whole() {
			continue
		} else if n, d := v.departures(l.ID); n != 1 || d.Reason != lock.Expired {
			t.Errorf("%v: left %d times, with reason %q", l.Claims, n, d.Reason)
		}
	}
	for _, name := range []string{"fraction", "set-1", "set-2", "many-0", "many-29"} {
		t.wantQueue(t.B, t.ref(name))
	}
	t.wantQueue(t.A, t.ref("plain"), heir)
	if !feeds[1].holds(t.Late, heir.ID) {
		t.Error("who waited behind expired entries does not hold")
	}
}

// leaseMany enqueues on n locks at once, so that a group commit shares writes.
func (t *trial) leaseMany(n int) []leased {
	t.Helper()
	all := make([]leased, n)
	together(n, func(i int) {
		draft, from := t.draft(fmt.Sprintf("many-%d", i)), time.Now()
		draft.TTL = t.MinTTL
		placed, _, err := t.client(i).Enqueue(t.ctx, draft)
		if err != nil {
			t.Errorf("Enqueue: %v", err)
		}
		all[i] = leased{placed, from, time.Now()}
	})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// expiryWholeLease enqueues when a lease that was used before, and might be used
// again, has little left.
func expiryWholeLease(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	used := t.lease(t.draft("a"), t.MinTTL)
	elsewhere := t.lease(t.draft("b"), t.MinTTL)
	t.remove(t.A, used.Entry, lock.Released)
	t.remove(t.B, elsewhere.Entry, lock.Released)
	until(used.from.Add(t.MinTTL*3/4), t.MinTTL/20, func() { t.wantQueue(t.A, t.ref("a")) })
	again := []leased{
		t.lease(t.draft("a"), t.MinTTL), t.lease(t.draft("b"), t.MinTTL), t.lease(t.draft("c"), t.MinTTL),
	}
	for _, l := range again {
		t.wantExpiry(feeds[0], l)
		t.wantExpiry(feeds[1], l)
	}
}

// expiryOwnLease first does everything after which a store that uses leases
// again could have one twice, then refreshes every other entry: the rest must go.
func expiryOwnLease(t *trial) {
	a := t.follow(t.A)
	t.churn()
	all := t.leaseMany(16)
	kept, rest := all[:8], all[8:]
	t.whileThere(a, rest, func() {
		for i := range kept {
			t.renew(t.client(i), &kept[i])
		}
	})
	for _, l := range append(rest, kept...) {
		t.wantExpiry(a, l)
	}
}

// churn enqueues and removes with everything done twice: the same id enqueued
// and the same entry removed, through both clients at once.
func (t *trial) churn() {
	for round := range 10 {
		draft := t.repeatable("churn")
		draft.TTL = t.MinTTL
		var mu sync.Mutex
		var e *lock.Entry
		together(4, func(i int) {
			placed, _, err := t.client(i).Enqueue(t.ctx, clone(draft))
			if err != nil {
				t.Errorf("Enqueue: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			e = placed
		})
		if t.Failed() {
			t.FailNow()
		}
		t.remove(t.client(round), e, lock.Released)
		t.wantLost("Remove again", t.A.Remove(t.ctx, e, lock.Released))
		t.wantLost("Remove again", t.B.Remove(t.ctx, e, lock.Released))
	}
}
