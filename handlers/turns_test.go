package handlers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/handlers"
)

// TestTurnsOfAnswers: of one tenant one large answer is made at a time, and of all as many as there may
// be; who has waited behind his own tenant lets another one before him. Who goes away is forgotten.
func TestTurnsOfAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := handlers.NewAnswerTurns(2)
		var order []string
		begin := func(ctx context.Context, tenant string) (end func()) {
			goOn := make(chan struct{})
			go func() {
				done, err := turns.Take(ctx, tenant)
				if err != nil {
					order = append(order, tenant+" gone")
					return
				}
				order = append(order, tenant)
				<-goOn
				done()
			}()
			synctest.Wait()
			return func() {
				close(goOn)
				synctest.Wait()
			}
		}
		expect := func(want ...string) {
			t.Helper()
			if len(order) != len(want) {
				t.Fatalf("answers are made of %v, want %v", order, want)
			}
			for i := range want {
				if order[i] != want[i] {
					t.Fatalf("answers are made of %v, want %v", order, want)
				}
			}
		}
		first := begin(t.Context(), "a")
		second := begin(t.Context(), "a")
		other := begin(t.Context(), "b")
		third := begin(t.Context(), "c")
		expect("a", "b")
		leaving, leave := context.WithCancelCause(t.Context())
		begin(leaving, "c")
		leave(errors.New("the client is gone"))
		synctest.Wait()
		expect("a", "b", "c gone")
		first()
		expect("a", "b", "c gone", "c")
		other()
		expect("a", "b", "c gone", "c", "a")
		second()
		third()
		if n := turns.Remembered(); n != 0 {
			t.Errorf("%d tenants are remembered", n)
		}
	})
}

// TestTurnOfWhoGoesAway: who goes away while he waits for all tenants leaves his own tenant's turn to
// the next of it.
func TestTurnOfWhoGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := handlers.NewAnswerTurns(1)
		done, err := turns.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		leaving, leave := context.WithCancel(t.Context())
		go func() { _, _ = turns.Take(leaving, "b") }()
		synctest.Wait()
		had := false
		go func() {
			if next, err := turns.Take(t.Context(), "b"); err == nil {
				had = true
				next()
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		done()
		synctest.Wait()
		if !had || turns.Remembered() != 0 {
			t.Errorf("the next of the tenant has its turn: %v; %d tenants are remembered", had, turns.Remembered())
		}
	})
}
