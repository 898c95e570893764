package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestTurnsOfWatches: all who watch the same have one turn, however many they are; who watches
// something else comes after it, so that all of them leave the server the time that they should.
func TestTurnsOfWatches(t *testing.T) {
	t.Parallel()
	const took = 10 * time.Millisecond
	turns, now := handlers.NewTurns(took), board.NextDrawing(time.Now())
	for i := range 50 {
		wait, first := turns.Take("overview", now.Add(time.Duration(i)*time.Microsecond))
		if wait != 0 || first != (i == 0) {
			t.Fatalf("number %d waits for %v, and is the first: %t", i, wait, first)
		}
	}
	for i, want := range []time.Duration{4 * took, 4 * took} {
		if wait, first := turns.Take("locks", now); wait != want || first != (i == 0) {
			t.Errorf("another view waits for %v, the first: %t; want %v", wait, first, want)
		}
	}
	next := board.NextDrawing(now)
	if wait, first := turns.Take("overview", next); wait != 0 || !first {
		t.Errorf("the next time it waits for %v, the first: %t", wait, first)
	}
	if n := turns.Planned(); n != 1 {
		t.Errorf("%d turns are remembered, of which one is not over", n)
	}
}

// TestManyGetOnePage: however many of a tenant ask for one page, it is made once, and none of
// them is refused.
func TestManyGetOnePage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pages, gate := handlers.NewRenderings(), make(chan struct{})
		made, answered := 0, make(chan error, 60)
		for range cap(answered) {
			go func() {
				answered <- pages.Get(t.Context(), "acme", "overview", func() (any, error) {
					made++
					<-gate
					return "page", nil
				})
			}()
		}
		synctest.Wait()
		if len(answered) > 0 {
			t.Fatalf("%d are answered already, one with %v", len(answered), <-answered)
		}
		close(gate)
		for range cap(answered) {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		if made != 1 {
			t.Errorf("it was made %d times", made)
		}
	})
}

// TestPageOfWhoIsGone: who waits for what another asked for gets it, also if that one goes.
func TestPageOfWhoIsGone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pages, gate := handlers.NewRenderings(), make(chan struct{})
		ask := func(ctx context.Context, key string, answered chan<- error) {
			go func() {
				answered <- pages.Get(ctx, "acme", key, func() (any, error) {
					<-gate
					return "page", nil
				})
			}()
			synctest.Wait()
		}
		others := make(chan error, 4)
		for _, key := range []string{"1", "2", "3", "4"} { // all that are made at once
			ask(t.Context(), key, others)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone, stays := make(chan error, 1), make(chan error, 1)
		ask(ctx, "overview", gone)
		ask(t.Context(), "overview", stays)
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone is told %v", err)
		}
		close(gate)
		if err := <-stays; err != nil {
			t.Errorf("who stays is told %v", err)
		}
		failing := func() (any, error) { return nil, &lock.Error{Code: lock.StoreUnavailable} }
		if err := pages.Get(t.Context(), "acme", "locks", failing); !errors.Is(err, lock.StoreUnavailable) {
			t.Errorf("a page that cannot be made: %v", err)
		}
	})
}

// TestNarrowWatches: operators who may see some names, which takes long to find, are told less often, and others
// as often as ever.
func TestNarrowWatches(t *testing.T) {
	t.Parallel()
	const took = 4 * time.Second
	turns, now := handlers.NewTurns(0), time.Now()
	for i := range 3 {
		wait, first := turns.TakeNarrow(fmt.Sprint("narrow", i), "acme", took, now)
		if want := time.Duration(i) * 4 * took; wait != want || !first {
			t.Errorf("the %d. waits for %v, want %v", i+1, wait, want)
		}
	}
	if wait, _ := turns.Take("other", now); wait != 0 {
		t.Errorf("another waits for %v", wait)
	}
	if wait, _ := turns.TakeNarrow("its", "other", took, now); wait != 0 {
		t.Errorf("another tenant's waits for %v", wait)
	}
	for i := range 1000 { // of whom nothing is kept
		tenant := fmt.Sprint("tenant-", i)
		end := turns.Watch(tenant)
		turns.TakeNarrow(tenant, tenant, took, now)
		end()
	}
	if n := turns.Paces(); n != 3 { // all others', and those who were said to watch
		t.Errorf("%d paces are kept", n)
	}
}
