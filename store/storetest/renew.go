package storetest

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

func renewCases() []testCase {
	return []testCase{
		{name: "renew/extends the lease", run: renewExtends},
		{name: "renew/a gone entry's keeps no other tenant's alive", run: renewForeignLease},
		{name: "renew/tells how much remains", run: renewRemaining},
		{name: "renew/is lost after a removal", run: renewRemoved},
		{name: "renew/is lost for what is not the entry", run: renewForged},
	}
}

// renewExtends keeps an entry alive through both clients for more than two
// leases, then lets it go.
func renewExtends(t *trial) {
	b := t.follow(t.B)
	kept, i := t.lease(t.draft("a"), t.MinTTL), 0
	until(time.Now().Add(t.MinTTL*5/2), t.MinTTL/5, func() {
		i++
		t.renew(t.client(i), &kept)
	})
	t.wantExpiry(b, kept)
}

// renewForeignLease refreshes a removed entry while another tenant's entry,
// which may have inherited its lease, is left alone.
func renewForeignLease(t *trial) {
	b := t.follow(t.B)
	draft1 := t.draft("a")
	draft1.TTL = t.MinTTL
	gone := t.enqueue(t.A, draft1)
	t.remove(t.A, gone, lock.Released)
	heir := t.lease(draft("other", "a"), t.MinTTL)
	t.whileThere(b, []leased{heir}, func() {
		t.wantLost("Renew of a released entry", t.A.Renew(t.ctx, gone))
	})
	t.wantExpiry(b, heir)
}

// renewRemaining asks how long a lease lasts while it runs down, when it was
// refreshed, and when there is none.
func renewRemaining(t *trial) {
	draft, ttl := t.draft("a"), 2*t.MinTTL
	draft.TTL = ttl
	e := t.enqueue(t.A, draft)
	t.wantRemaining(e, 0, ttl)
	t.eventually(ttl, "the lease runs down", func() bool {
		left, err := t.B.Remaining(t.ctx, e)
		return err == nil && left <= ttl/2
	})
	if err := t.B.Renew(t.ctx, e); err != nil {
		t.Errorf("Renew: %v", err)
	}
	t.wantRemaining(e, ttl/2+1, ttl)
	t.remove(t.A, e, lock.Released)
	for i := range 2 {
		_, err := t.client(i).Remaining(t.ctx, e)
		t.wantLost("Remaining of a removed entry", err)
	}
}

func (t *trial) wantRemaining(e *lock.Entry, least, most time.Duration) {
	t.Helper()
	for i := range 2 {
		if left, err := t.client(i).Remaining(t.ctx, e); err != nil || left < least || left > most {
			t.Errorf("Remaining = %v, %v, want between %v and %v", left, err, least, most)
		}
	}
}

// renewRemoved races refreshes against a removal through the other client. One
// that begins after the removal has returned must not succeed, however alive the
// lease still looks.
func renewRemoved(t *trial) {
	for i := range 60 {
		e := t.enqueue(t.client(i), t.draft("a"))
		together(3, func(worker int) {
			if worker == 0 {
				if err := t.client(i+1).Remove(t.ctx, e, lock.Revoked); err != nil {
					t.Errorf("Remove: %v", err)
				}
				return
			}
			if err := t.client(worker).Renew(t.ctx, e); err != nil {
				t.wantLost("Renew during a removal", err)
			}
		})
		t.wantLost("Renew after a removal", t.client(i).Renew(t.ctx, e))
		t.wantLost("Renew after a removal", t.client(i+1).Renew(t.ctx, e))
	}
}

// renewForged asks for entries that differ from a living one in one thing.
func renewForged(t *trial) {
	fresh, repeatable := t.enqueue(t.A, t.draft("a")), t.enqueue(t.A, t.repeatable("a"))
	for _, e := range []*lock.Entry{fresh, repeatable} {
		for what, forged := range forgeries(e) {
			t.wantLost("Renew of "+what, t.A.Renew(t.ctx, forged))
			t.wantLost("Renew of "+what, t.B.Renew(t.ctx, forged))
		}
		for i := range 2 {
			if err := t.client(i).Renew(t.ctx, e); err != nil {
				t.Errorf("Renew of the entry itself: %v", err)
			}
		}
	}
	t.wantQueue(t.B, t.ref("a"), fresh, repeatable)
}

// forgeries returns entries that are not e, by what makes them another. Only the
// id of a resumable entry can have had an earlier one.
func forgeries(e *lock.Entry) map[string]*lock.Entry {
	tenant, name, id := clone(e), clone(e), clone(e)
	tenant.Tenant = "other"
	name.Claims = []lock.Claim{{Name: "other", Mode: lock.Exclusive}}
	id.ID = "OTHER" + e.ID[5:]
	forged := map[string]*lock.Entry{
		"another tenant's entry": tenant,
		"another lock's entry":   name,
		"another id":             id,
	}
	if e.Resumable() {
		older := clone(e)
		older.Number--
		forged["an earlier entry with the same id"] = older
	}
	return forged
}
