package handlers_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestTurnsOfAnswers: of one tenant one large answer is made at a time, and of all as many as there may
// be; who has waited behind his own tenant lets another one before him. Who goes away is forgotten.
func TestTurnsOfAnswers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
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

// TestTurnsInParts: others have their turns between the parts of one, and no other of its tenant. Who goes
// away meanwhile has none to give back but that of his tenant.
func TestTurnsInParts(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		turns := handlers.NewAnswerTurns(1)
		pass, done, err := turns.TakeParts(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := pass(t.Context()); err != nil {
			t.Errorf("where nobody waits: %v", err)
		}
		var order []string
		goOn := make(chan struct{})
		for _, tenant := range []string{"a", "b"} {
			go func() {
				end, err := turns.Take(t.Context(), tenant)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, tenant)
				<-goOn
				end()
			}()
		}
		synctest.Wait()
		leaving, leave := context.WithCancel(t.Context())
		passed := make(chan error, 1)
		go func() { passed <- pass(leaving) }()
		synctest.Wait()
		if len(order) != 1 || order[0] != "b" || len(passed) > 0 {
			t.Errorf("between two parts of a it is the turn of %v", order)
		}
		leave()
		if err := <-passed; !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone has the rest of his turn: %v", err)
		}
		done()
		done()
		synctest.Wait()
		if len(order) != 1 {
			t.Errorf("a turn that nobody had is given to %v", order[1:])
		}
		close(goOn)
		synctest.Wait()
		if len(order) != 2 || turns.Remembered() != 0 {
			t.Errorf("it is the turn of %v; %d tenants are remembered", order, turns.Remembered())
		}
	})
}

// TestTurnOfWhoGoesAway: who goes away while he waits for all tenants leaves his own tenant's turn to
// the next of it.
func TestTurnOfWhoGoesAway(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
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

// TestEnterOneAfterTheOther: those of one tenant so long apart, and those of others meanwhile. Who goes away is not waited for.
func TestEnterOneAfterTheOther(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const many = 50
		turns, began := handlers.NewAnswerTurns(math.MaxInt64), time.Now()
		took := make(chan time.Duration, many)
		enter := func(ctx context.Context, tenant string) error { return turns.Enter(ctx, tenant, time.Millisecond) }
		for range many {
			go func() {
				if err := enter(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				took <- time.Since(began)
			}()
		}
		synctest.Wait()
		gone, leave := context.WithCancelCause(t.Context())
		leave(errors.New("the client is gone"))
		if err := enter(gone, "a"); err == nil || time.Since(began) > 0 {
			t.Errorf("who is gone enters after %s: %v", time.Since(began), err)
		}
		if err := enter(t.Context(), "b"); err != nil || time.Since(began) != time.Millisecond {
			t.Errorf("another tenant's enters after %s: %v", time.Since(began), err)
		}
		for i := range many {
			if want := time.Duration(1+i) * time.Millisecond; <-took != want {
				t.Fatalf("number %d does not enter after %s", i, want)
			}
		}
		if n := turns.Remembered(); n != 0 {
			t.Errorf("%d tenants are remembered", n)
		}
	})
}
