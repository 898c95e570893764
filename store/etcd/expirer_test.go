package etcd

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// TestLeaseOfAnExpiredEntry: it carries the next one of its tenant, and etcd ends it for none of them. An entry that
// the other store on the connection renews lasts.
func TestLeaseOfAnExpiredEntry(t *testing.T) {
	a, b, committed, lose := startTwo(t)
	lose()
	if _, _, err := a.Enqueue(t.Context(), reusable("first", false)); err != nil { // whose answer is lost
		t.Fatal(err)
	}
	<-committed
	short := func(id lock.ID) *lock.Entry {
		e := reusable(id, false)
		e.TTL = 2 * time.Second
		placed, _, err := a.Enqueue(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return placed
	}
	renewed := short("renewed")
	soon(t, "an entry has the lease of one that ended before", func() bool { // which lapses if nothing runs for a second
		began := time.Now()
		dead := short(lock.ID(fmt.Sprint("dead-", began.UnixNano())))
		soon(t, "the entry that nobody renews is gone", func() bool {
			if err := b.Renew(t.Context(), renewed); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			return a.prove(t.Context(), dead) != nil
		})
		if took := time.Since(began); took < dead.TTL {
			t.Errorf("it lasted for %v", took)
		}
		return short(lock.ID(fmt.Sprint("next-", began.UnixNano()))).Handle == dead.Handle
	})
}

// TestReleasedLeaveNoLifetime: how long an entry lasts is known while it is there, and not for as long as its TTL.
func TestReleasedLeaveNoLifetime(t *testing.T) {
	a, _, committed, lose := startTwo(t)
	lose()
	e, _, err := a.Enqueue(t.Context(), reusable("first", false)) // whose answer is lost
	if err != nil {
		t.Fatal(err)
	}
	<-committed
	if left, err := a.Remaining(t.Context(), e); err != nil || left <= time.Hour-time.Minute || left > time.Hour {
		t.Errorf("it lasts for %v, %v", left, err)
	}
	if err := a.Remove(t.Context(), e, lock.Released); err != nil {
		t.Fatal(err)
	}
	if all, waited := a.conn.lifetimes.known(); all != 0 || waited != 0 {
		t.Errorf("%d are known, %d waited for", all, waited)
	}
}

// TestRevokedLeaveNoLifetime: nor where the lease is not used again.
func TestRevokedLeaveNoLifetime(t *testing.T) {
	a, b, _, lose := startTwo(t)
	lose()
	_, _, _ = a.Enqueue(t.Context(), reusable("first", false)) // whose answer is lost
	if err := a.Remove(t.Context(), a.mustFind(t, reusable("first", false)), lock.Released); err != nil {
		t.Fatal(err)
	}
	e, _, err := a.Enqueue(t.Context(), reusable("revoked", false))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), e, lock.Revoked); err != nil {
		t.Fatal(err)
	}
	if all, waited := a.conn.lifetimes.known(); all != 0 || waited != 0 {
		t.Errorf("%d are known, %d waited for", all, waited)
	}
}

// TestRenewedHere: what this process did not write, as what was there before a restart, it ends in time once it has
// renewed it.
func TestRenewedHere(t *testing.T) {
	a, b, committed, lose := startTwo(t)
	lose()
	e, _, err := a.Enqueue(t.Context(), reusable("first", false)) // whose answer is lost
	if err != nil {
		t.Fatal(err)
	}
	<-committed
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, known := b.expirer.left(e); known {
		t.Error("it is known how long the entry of a closed store lasts")
	}
	if err := b.Renew(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if left, known := b.expirer.left(e); !known || left > e.TTL {
		t.Errorf("it lasts for %v (%v)", left, known)
	}
}

// TestRenewalThatFails: it is not under way any more.
func TestRenewalThatFails(t *testing.T) {
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	gone := lasts(7, 12345)
	s.expirer.watch(gone, time.Now())
	if err := m.renew(t.Context(), gone.Handle, true); !isLeaseNotFound(err) {
		t.Fatal(err)
	}
	if l := m.lifetimes.next(time.Now().Add(time.Hour)); l == nil {
		t.Error("an entry whose renewal has failed does not end")
	} else {
		l.of.ends.Done()
	}
}
