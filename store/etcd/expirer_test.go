package etcd

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

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
	began := time.Now()
	dead, renewed := short("dead"), short("renewed")
	soon(t, "the entry that nobody renews is gone", func() bool {
		if err := b.Renew(t.Context(), renewed); err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		return a.prove(t.Context(), dead) != nil
	})
	if took := time.Since(began); took < dead.TTL {
		t.Errorf("it lasted for %v", took)
	}
	resp, err := a.conn.leases.LeaseTimeToLive(t.Context(), &pb.LeaseTimeToLiveRequest{ID: dead.Handle})
	if err != nil || resp.TTL < 0 {
		t.Errorf("its lease was ended: %v, %v", resp, err)
	}
	if next := short("next"); next.Handle != dead.Handle {
		t.Errorf("the next entry has lease %x, and not %x as the one that ended", next.Handle, dead.Handle)
	}
}
