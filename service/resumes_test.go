package service_test

import (
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestResumes: a key resumes what is there, and not what has ended; the replicas' own entries are no tenant's.
func TestResumes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t, func(*service.Config) {})
		g := r.hold(keyed("orders:1", 0, "k"))
		synctest.Wait()
		if !r.Resumes("acme", "orders:1", "anyone", "k") || r.Resumes("acme", "orders:1", "w", "other") || r.Resumes("acme", "orders:2", "w", "k") {
			t.Error("it is not that key of that lock alone that resumes")
		}
		for _, tenant := range r.TenantNames() {
			if tenant == lock.OwnTenant {
				t.Error("the replicas' own entries are some tenant's")
			}
		}
		r.release(g)
		if r.Resumes("acme", "orders:1", "anyone", "k") {
			t.Error("what has ended is resumed")
		}
	})
}
