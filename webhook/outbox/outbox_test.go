package outbox_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

const (
	here  = "https://receiver.example/here"
	there = "https://receiver.example/there"
)

func countRecords(t *testing.T, r interface {
	List(context.Context, store.RecordQuery) (store.RecordPage, error)
}, kind string,
) (n int) {
	t.Helper()
	q := store.RecordQuery{Kind: kind}
	for {
		page, err := r.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Records)
		if q.After = page.Next; q.After == "" {
			return n
		}
	}
}

// TestDelivers: what happens is told to who asked for it, soon, once and in order.
func TestDelivers(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("one")
		<-time.After(time.Second)
		w.subscribe("acme", here, "orders:*")
		w.subscribe("acme", there, "*", lock.EventReleased)
		w.subscribe("other", "https://other.example/", "*")
		until(t, 20*time.Second, "everybody is told", func() bool {
			r.cycle("acme", "orders:1")
			return len(w.received(here)) > 0 && len(w.received(there)) > 0
		})
		<-time.After(time.Second)
		before := len(w.received(here))
		began := time.Now()
		r.cycle("acme", "orders:2")
		r.cycle("acme", "invoices:2")
		until(t, time.Second, "both events are told", func() bool { return len(w.received(here)) == before+2 })
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if got, want := kindsOf(w.received(here), "orders:2"), []string{"lock.acquired", "lock.released"}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		until(t, time.Second, "the other one is told", func() bool { return len(kindsOf(w.received(there), "invoices:2")) > 0 })
		if got := kindsOf(w.received(there), "invoices:2"); !slices.Equal(got, []string{"lock.released"}) {
			t.Errorf("the other one is told %v", got)
		}
		if got := w.received("https://other.example/"); len(got) != 0 {
			t.Errorf("another tenant is told %v", got)
		}
		seen := map[string]bool{}
		for _, one := range w.received(here) {
			if seen[one.id] || one.secrets != 1 || one.event.Data.Tenant != "acme" {
				t.Errorf("%+v: twice, not signed, or another tenant's", one)
			}
			seen[one.id] = true
		}
	})
}

// TestRetries: what fails is tried again by the schedule, and nothing of it is left then.
func TestRetries(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("one")
		w.subscribe("acme", here, "*", lock.EventAcquired)
		until(t, 20*time.Second, "it is told", func() bool { r.cycle("acme", "warm"); return len(w.received(here)) > 0 })
		<-time.After(5 * time.Second)
		down := func(string, webhook.Message) webhook.Result {
			return webhook.Result{Outcome: webhook.Failed, Status: 500}
		}
		w.setBehave(down)
		w.took = time.Millisecond
		was := w.attempts()
		r.cycle("acme", "orders:1")
		until(t, 10*time.Second, "it is tried again", func() bool { return w.attempts() == was+2 })
		if left := w.left(); len(left) != 1 {
			t.Errorf("kept: %v, want the delivery", left)
		}
		w.setBehave(nil)
		until(t, 6*time.Minute, "it is delivered", func() bool { return len(kindsOf(w.received(here), "orders:1")) == 1 })
		until(t, 10*time.Second, "nothing is kept", func() bool { return len(w.left()) == 0 })
		if n := w.attempts() - was; n != 3 {
			t.Errorf("%d attempts, want 3", n)
		}
	})
}

// TestOthersGoOn: a receiver that hangs holds up nobody else, and what it is told of a
// lock comes in order.
func TestOthersGoOn(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := w.replica("one")
		w.subscribe("acme", here, "*")
		w.subscribe("acme", there, "*")
		until(t, 20*time.Second, "both are told", func() bool {
			r.cycle("acme", "warm")
			return len(w.received(here)) > 0 && len(w.received(there)) > 0
		})
		<-time.After(5 * time.Second)
		was := len(w.received(there))
		hang := make(chan struct{})
		w.setBehave(nil)
		slow := func(url string, _ webhook.Message) webhook.Result {
			if url == here {
				w.mu.Unlock()
				<-hang
				w.mu.Lock()
			}
			return webhook.Result{Outcome: webhook.Delivered}
		}
		w.setBehave(slow)
		for range 100 {
			r.cycle("acme", "orders:1")
		}
		until(t, 5*time.Second, "the other one is told", func() bool { return len(w.received(there)) == was+200 })
		<-time.After(5 * time.Second)
		close(hang)
		until(t, time.Minute, "the slow one is told", func() bool { return len(kindsOf(w.received(here), "orders:1")) == 200 })
		var last uint64
		for _, one := range w.received(here) {
			if one.event.Data.Lock == "orders:1" {
				if one.event.Data.Number < last {
					t.Fatalf("%s comes after number %d", one.id, last)
				}
				last = one.event.Data.Number
			}
		}
		until(t, 10*time.Second, "nothing is kept", func() bool { return len(w.left()) == 0 })
	})
}

// TestTakesOver: when the one who sends dies, another goes on, and nothing is lost.
func TestTakesOver(t *testing.T) {
	for name, after := range map[string]time.Duration{"before anything is written": 50 * time.Millisecond, "behind the cursor and what states say": 30 * time.Second} {
		t.Run(name, func(t *testing.T) { takesOver(t, after) })
	}
}

// takesOver has the one who sends die so long after a delivery has failed.
func takesOver(t *testing.T, after time.Duration) {
	t.Helper()
	run(t, func(t *testing.T, w *world) {
		one, two := w.replica("one"), w.replica("two")
		<-time.After(time.Second) // both know what is there, or what was before they did is told as missed
		var hooks []string
		for _, c := range "abcdefghijkl" {
			url := "https://receiver.example/" + string(c)
			hooks = append(hooks, url)
			w.subscribe("acme", url, "*", lock.EventReleased)
		}
		told := func(name string) func() bool {
			return func() bool {
				for _, url := range hooks {
					if len(kindsOf(w.received(url), name)) == 0 {
						return false
					}
				}
				return true
			}
		}
		two.cycle("acme", "first")
		until(t, 30*time.Second, "all are told", told("first"))
		w.setBehave(func(string, webhook.Message) webhook.Result { return webhook.Result{Outcome: webhook.Failed} })
		two.cycle("acme", "second")
		<-time.After(after)
		one.kill()
		w.setBehave(nil)
		two.cycle("acme", "third")
		until(t, 30*time.Second, "all are told by the other one", told("third"))
		until(t, 10*time.Minute, "what failed is tried again", told("second"))
		until(t, time.Minute, "nothing is kept", func() bool { return len(w.left()) == 0 })
	})
}
