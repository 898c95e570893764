package handlers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

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

// TestPageOfWhoIsGone: a client gets the page that another asked for, also if that one
// disconnects.
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
		// all that are made at once
		for _, key := range []string{"1", "2", "3", "4"}[:handlers.RenderingsAtOnce] {
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
		if err := pages.Get(t.Context(), "acme", "locks", failing); !errors.Is(
			err, lock.StoreUnavailable,
		) {
			t.Errorf("a page that cannot be made: %v", err)
		}
	})
}
