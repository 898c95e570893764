package view_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// crowded has so many locks, each with 100 readers.
func crowded(locks int) *view.View {
	v, n := empty(), uint64(0)
	s := store.Snapshot{}
	for i := range locks {
		for range 100 {
			n++
			s.Entries = append(s.Entries, &lock.Entry{
				ID: lock.ID(fmt.Sprintf("%026d", n)), Tenant: "acme", Number: n, TTL: 1,
				Claims: []lock.Claim{{Name: fmt.Sprintf("a%03d", i), Mode: lock.Shared}},
			})
		}
	}
	s.Number = n
	v.Reset(s)
	return v
}

// TestListLetsGoOfHolders: a list of locks with many holders holds the view for some of them only.
func TestListLetsGoOfHolders(t *testing.T) {
	v, page, parts := crowded(10), &view.Page{}, 0
	for last, more := "", true; more; parts++ {
		before := len(page.Locks)
		last, more = v.Lists.List(view.ListRequest{Tenant: "acme", Limit: 100}, last, page)
		if n := len(page.Locks) - before; n > 2 {
			t.Errorf("%d locks of 100 holders are shown at once", n)
		}
	}
	if len(page.Locks) != 10 || page.Next != "" || parts < 5 {
		t.Errorf("%d locks in %d parts, and then %q", len(page.Locks), parts, page.Next)
	}
}

// TestListsTakeTurns: grants have to wait for one list, and not for all of them at once.
func TestListsTakeTurns(t *testing.T) {
	v := crowded(3)
	var all sync.WaitGroup
	var at, most atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 50 {
				may := func(string) bool {
					if n := at.Add(1); n > most.Load() {
						most.Store(n)
					}
					runtime.Gosched()
					at.Add(-1)
					return false
				}
				v.Lists.List(view.ListRequest{Tenant: "acme", Limit: 100, May: may}, "", &view.Page{})
			}
		})
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d lists read the view at once", n)
	}
}
