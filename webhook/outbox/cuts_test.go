package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store/memory"
)

// TestNothingIsLostByCuts: three replicas that send are cut off and come back, under load,
// believing that they send or not, with a store that is slow or loses answers, and receivers that
// fail: each subscription receives each event, or events.missed, and in the end
// nothing is left in the store. CUTS=30 plays so many such days, in a minute.
func TestNothingIsLostByCuts(t *testing.T) {
	first, last := uint64(8), uint64(8) // which left something once
	if n, err := strconv.ParseUint(os.Getenv("CUTS"), 10, 32); err == nil && n > 0 {
		first, last = 0, n-1
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) { nothingIsLostByCuts(t, w, seed) })
		})
	}
}

func nothingIsLostByCuts(t *testing.T, w *world, seed uint64) {
	// one for each goroutine
	random := func(of uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, of)) }
	faults, pauses, answers := random(1), random(2), random(3)
	serves := w.replica("serves")
	<-time.After(time.Second)
	urls := []string{here, there, "https://receiver.example/1", "https://receiver.example/2"}
	var from []uint64
	for _, url := range urls {
		from = append(from, w.subscribe("acme", url, "*").From)
	}
	<-time.After(30 * time.Second)
	all := []*replica{w.replica("one"), w.replica("two"), w.replica("three")}
	<-time.After(30 * time.Second)
	w.leave("serves") // it sees everything, and sends nothing
	var real follower
	stop := real.follow(t, serves)
	w.setBehave(failsNowAndThen(answers))
	stopLoad := serves.load(pauses, 1500)
	for range 25 {
		all[faults.IntN(len(all))].suffer(faults)
		<-time.After(upTo(faults, 20*time.Second))
	}
	stopLoad()
	<-time.After(time.Second)
	stop()
	w.setBehave(nil)
	<-time.After(2 * time.Hour)
	for i, url := range urls {
		missed, twice := w.wantTold(url, from[i], real.seen)
		t.Logf(
			"of %d events %d are told more than once, and something is missed %d times", len(real.seen),
			twice, missed,
		)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}

// suffer has something happen to a replica, for a while.
func (r *replica) suffer(random *rand.Rand) {
	switch random.IntN(4) {
	case 0, 1:
		r.cable.Cut([]memory.Cut{memory.Silent, memory.Deaf, memory.Broken}[random.IntN(3)])
		if random.IntN(2) == 0 {
			r.w.leave(r.name)
		}
		<-time.After(upTo(random, 25*time.Second))
		r.cable.Cut("")
		<-time.After(upTo(random, 5*time.Second))
		r.w.leave(r.name)
		r.w.join(r.name)
	case 2:
		r.own.loseAnswers(upTo(random, 7*time.Second))
		<-time.After(upTo(random, 15*time.Second))
		r.own.loseAnswers(0)
	case 3:
		r.own.slow("webhook-", upTo(random, 4*time.Second), upTo(random, 4*time.Second))
		<-time.After(upTo(random, 15*time.Second))
		r.own.slow("", 0, 0)
	}
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most))) + 1
}
