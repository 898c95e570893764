package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/test/bubble"
)

func TestAsyncBesideALateReplica(t *testing.T) {
	for name, how := range map[string]feed{"cut off": lost, "late": frozen} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				a, listA := s.listed(t, "a")
				b, listB := s.listed(t, "b")
				after(time.Second)
				b.store.setFeed(how)
				const n = 20
				for i := range n {
					a.hold(lasting(want(fmt.Sprint("orders:", i), 0)))
					a.post(want(fmt.Sprint("orders:", i), time.Hour))
				}
				after(10 * time.Minute)
				if left := len(s.Entries()) - n; left != n {
					t.Errorf("%d of %d entries are left", left, n)
				}
				if live, _ := listA.Live(); len(live) != 1 {
					t.Errorf("those that run and can serve are %v", live)
				}
				b.store.setFeed(running)
				after(10 * time.Second)
				for _, list := range []*replicas.List{listA, listB} {
					if live, _ := list.Live(); len(live) != 2 {
						t.Errorf("when it sees again what happens, %v run", live)
					}
				}
				after(10 * time.Minute)
				if left := len(s.Entries()) - n; left != n {
					t.Errorf("later %d of %d entries are left", left, n)
				}
			})
		})
	}
}

func (s *sharedStore) listed(t *testing.T, id string) (*replica, *replicas.List) {
	records := s.Connect(nil)
	t.Cleanup(records.Close)
	list := replicas.New(records.Records(), replicas.Replica{ID: id}, slog.New(slog.DiscardHandler))
	r := s.replica(t, func(c *service.Config) { c.Sharing = list.Sharing })
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { list.Run(ctx, r.Current) })
	t.Cleanup(func() { stop(); running.Wait() })
	synctest.Wait()
	return r, list
}
