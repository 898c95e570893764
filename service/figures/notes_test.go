package figures_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/test/bubble"
)

func granted(number uint64) *lock.Event {
	e := &lock.Entry{
		ID: "e1", Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "orders:1"}},
	}
	return &lock.Event{
		ID: lock.EventID{Number: number, Index: 1}, Kind: lock.EventAcquired, Entry: e, Held: true,
		At: time.Now(),
	}
}

func noneFree(lock.Ref) bool { return false }

// TestViewWaitsForNoReader: a view leaves what it sees while the figures are locked, because grants
// wait for the view.
func TestViewWaitsForNoReader(t *testing.T) {
	f, r := figures.New(0), lock.Ref{Tenant: "acme", Name: "orders:1"}
	f.Relist(func(func(string, int, int)) { // it calls this while the figures are locked
		f.Happened(granted(7), 0, noneFree)
		f.Waiting(r, 3, time.Now())
		f.Level("acme", 3, 1, time.Now())
	}, func(lock.Ref) (int, int) { return 0, 0 }, time.Now())
	if is := f.Of(r); is.Newest != 7 || is.Acquisitions != 1 {
		t.Errorf("after it: %+v", is)
	}
}

// TestRunCounts: what a view left is counted soon, also without a reader.
func TestRunCounts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, r := figures.New(0), lock.Ref{Tenant: "acme", Name: "orders:1"}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.Run(ctx); close(done) }()
		for number := range uint64(200) {
			f.Happened(granted(number+1), 0, noneFree)
		}
		<-time.After(time.Second)
		f.Happened(granted(201), 0, noneFree)
		<-time.After(time.Second)
		if newest, _ := f.Recent(r, time.Time{}); newest != 201 {
			t.Errorf("the newest grant is %d", newest)
		}
		cancel()
		<-done
	})
}

// TestNotesAreBounded: without a reader, the view does so from some notes on.
func TestNotesAreBounded(t *testing.T) {
	f, r := figures.New(0), lock.Ref{Tenant: "acme", Name: "orders:1"}
	for number := range uint64(10_000) {
		f.Happened(granted(number+1), 0, noneFree)
	}
	if newest, _ := f.Recent(r, time.Time{}); newest < 8000 {
		t.Errorf("of 10 000 grants %d are counted", newest)
	}
}
