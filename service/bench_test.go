package service_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
)

// feedOnly is a store that can only be followed: it hands its follower over.
type feedOnly struct {
	store.Store
	follower chan store.Watcher
}

func (f feedOnly) Watch(ctx context.Context, to store.Watcher) {
	to.Reset(store.Snapshot{Number: 100})
	f.follower <- to
	<-ctx.Done()
}

func (feedOnly) Refusal() error { return nil }

// BenchmarkView measures a replica's work for one cycle in its feed: an entry joins and holds,
// and is released, while 10 000 others hold.
func BenchmarkView(b *testing.B) {
	f := feedOnly{follower: make(chan store.Watcher)}
	s := service.New(service.Config{Store: f, TokenKey: tokenKey(), MinTTL: minTTL})
	defer s.Close()
	view, number := <-f.follower, uint64(100)
	join := func(name string) lock.ID {
		number++
		e := &lock.Entry{
			ID: service.NumberedID(number), Tenant: "acme", Holder: "w", TTL: time.Minute, Number: number,
			EnqueuedAt: time.Now(), Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		}
		view.Apply(number, []store.Change{{Number: number, Joined: e}})
		return e.ID
	}
	for i := range 10_000 {
		join("held:" + strconv.Itoa(i))
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = "orders:" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		id := join(names[number%1000])
		number++
		view.Apply(number, []store.Change{{Number: number, Left: id, Reason: lock.Released}})
	}
}
