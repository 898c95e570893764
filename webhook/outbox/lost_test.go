package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

// follower writes down what really happens, as a stream of events tells it.
type follower struct {
	seen []lock.Event
}

func (f *follower) follow(t *testing.T, r *replica) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	stream, err := r.Events(t.Context(), eventsOf("acme"))
	if err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	go func() {
		defer close(done)
		defer stream.Close()
		for room := newRoom(); ; {
			given, missed, more := stream.Next(room)
			if missed != nil {
				t.Errorf("the stream missed %+v", missed)
			}
			for _, rec := range given {
				f.seen = append(f.seen, rec.Event)
			}
			if more == nil {
				continue
			}
			select {
			case <-more:
			case <-quit:
				if given, _, _ := stream.Next(room); len(given) == 0 {
					return
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestNothingIsLost: the replicas that send are killed again and again, under load and with
// receivers that fail: each subscription receives each event, or events.missed.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) { nothingIsLost(t, w, seed) })
		})
	}
}

// kills is how many replicas are killed: KILLS=50 in each of two runs takes some minutes.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("KILLS")); err == nil {
		return n
	}
	return 6
}

func parse(t *testing.T, id string) lock.EventID {
	t.Helper()
	parsed, err := lock.ParseEventID(id)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// failsNowAndThen is a receiver that answers three deliveries in ten with 503.
func failsNowAndThen(answers *rand.Rand) func(string, webhook.Message) webhook.Result {
	return func(string, webhook.Message) webhook.Result {
		if answers.IntN(10) < 3 {
			return webhook.Result{Outcome: webhook.Failed, Status: 503}
		}
		return webhook.Result{Outcome: webhook.Delivered}
	}
}

// load takes and releases locks, with less than so many milliseconds between them, until it is
// stopped.
func (r *replica) load(pauses *rand.Rand, within int) (stop func()) {
	told := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-told:
				close(told)
				return
			case <-time.After(time.Duration(pauses.IntN(within)) * time.Millisecond):
				r.cycle("acme", fmt.Sprint("orders:", n%7))
			}
		}
	}()
	return func() {
		told <- struct{}{}
		<-told
	}
}

func nothingIsLost(t *testing.T, w *world, seed uint64) {
	// one for each goroutine
	random := func(of uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, of)) }
	answers, pauses, deaths := random(1), random(2), random(3)
	serves := w.replica("serves") // one that stays; it sends as well, while it is on the list
	<-time.After(time.Second)
	urls := []string{
		here, there, "https://receiver.example/1", "https://receiver.example/2",
		"https://receiver.example/3",
	}
	var from []uint64
	for _, url := range urls {
		from = append(from, w.subscribe("acme", url, "*").From)
	}
	<-time.After(30 * time.Second)
	var real follower
	stop := real.follow(t, serves)
	w.setBehave(failsNowAndThen(answers))
	stopLoad := serves.load(pauses, 2000)
	var victims []*replica
	for i := range kills() {
		victim := w.replica(fmt.Sprint("victim-", i))
		<-time.After(time.Duration(deaths.IntN(60_000)) * time.Millisecond)
		victim.kill()
		victims = append(victims, victim)
		<-time.After(time.Duration(deaths.IntN(3000)) * time.Millisecond)
		if i%3 == 0 {
			victim.stop()
		}
	}
	stopLoad()
	<-time.After(time.Second)
	stop()
	for _, victim := range victims {
		victim.stop()
	}
	w.setBehave(nil)
	if len(real.seen) < 16*kills() {
		t.Fatalf("only %d events", len(real.seen))
	}
	<-time.After(time.Hour)
	missed, twice := 0, 0
	for i, url := range urls {
		m, again := w.wantTold(url, from[i], real.seen)
		missed += m
		twice += again
	}
	if missed > 0 {
		t.Errorf("events.missed came %d times, although a replica saw everything", missed)
	}
	t.Logf("%d events for %d receivers, %d told more than once", len(real.seen), len(urls), twice)
	if left := w.left(); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}

// wantTold checks that a receiver got all events since a number, or events.missed for them.
// It returns the number of events.missed, and of events that came more than once.
func (w *world) wantTold(url string, from uint64, all []lock.Event) (missed, twice int) {
	w.t.Helper()
	told := map[lock.EventID]int{}
	var gaps [][2]lock.EventID
	seen := map[string]bool{} // a receiver goes by the ids: what it has seen it passes by
	for _, one := range w.received(url) {
		if seen[one.id] && one.event.Type == api.EventsMissed {
			continue
		}
		seen[one.id] = true
		if one.event.Type == api.EventsMissed {
			gaps = append(
				gaps, [2]lock.EventID{parse(w.t, one.event.Data.After), parse(w.t, one.event.Data.Before)},
			)
			continue
		}
		told[parse(w.t, one.id)]++
	}
	for _, e := range all {
		within := slices.ContainsFunc(gaps, func(gap [2]lock.EventID) bool {
			return e.ID.Compare(gap[0]) > 0 && e.ID.Compare(gap[1]) <= 0
		})
		if e.ID.Number > from && told[e.ID] == 0 && !within {
			w.t.Errorf("%s never learnt of %s, %s", url, e.ID, e.Kind)
		}
		if told[e.ID] > 1 {
			twice++
		}
	}
	return len(gaps), twice
}
