package simulation

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/test/bubble"
)

// result is what came of a history.
type result struct {
	problems []string
	hash     uint64
	steps    int
}

// simulate plays the history of a seed.
func simulate(t *testing.T, o options, trace func(string)) result {
	return playIn(t, func() *world { return newWorld(o, trace) }, (*world).history)
}

// playIn has a new world's history happen in a bubble.
func playIn(t *testing.T, begin func() *world, history func(*world)) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r.problems = append(r.problems, fmt.Sprint("panic: ", p))
		}
	}()
	bubble.Test(t, func(*testing.T) {
		w := begin()
		defer func() { r = result{w.problems, w.hash.Sum64(), w.steps} }()
		history(w)
	})
	return r
}

// number is an environment variable's value.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSeed plays the history of SIMULATE_SEED and shows each step of it.
func TestSeed(t *testing.T) {
	o := expand(number(t, "SIMULATE_SEED", 1))
	trace := func(string) {}
	if testing.Verbose() {
		trace = func(line string) { fmt.Println(line) }
	}
	if r := simulate(t, o, trace); len(r.problems) > 0 {
		t.Errorf("%v\noptions: %v", r.problems, o)
	}
}

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) {
	webhooks := uint64(10)
	for !expand(webhooks).Webhooks {
		webhooks++
	}
	for _, seed := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, webhooks} {
		first := simulate(t, expand(seed), nil)
		for range 20 {
			if again := simulate(t, expand(seed), nil); again.hash != first.hash {
				t.Fatalf("seed %d gives histories with the hashes %x and %x", seed, first.hash, again.hash)
			}
		}
	}
}
