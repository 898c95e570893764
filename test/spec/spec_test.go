package spec_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/spec"
)

var whole = flag.Bool("whole", false, "check the large cases too, which takes minutes")

func claim(lock string, mode spec.Mode) spec.Claim {
	return spec.Claim{Lock: lock, Mode: mode, Permits: 1, Limit: 2}
}

func entry(id string, claims ...spec.Claim) spec.Entry {
	return spec.Entry{ID: id, Claims: claims}
}

func keyed(e spec.Entry) spec.Entry { e.Keyed = true; return e }

func anyOf(k int, e spec.Entry) spec.Entry { e.Any = k; return e }

var (
	x, y    = claim("x", spec.Exclusive), claim("y", spec.Exclusive)
	a, b, c = entry("A", x), entry("B", x), entry("C", x)
	read    = claim("x", spec.Shared)
	permit  = claim("x", spec.Semaphore)
	mirror  = map[string]string{"A": "B", "B": "A"}

	retry = spec.Case{Name: "retry", Entries: []spec.Entry{a, keyed(c)}, Replicas: 2, Late: 2}
	crash = spec.Case{
		Name: "crash", Entries: []spec.Entry{keyed(a)}, Replicas: 2, Late: 2, Crashes: 1,
	}
	restore = spec.Case{
		Name: "restore", Entries: []spec.Entry{a, b}, Replicas: 2, Late: 1, Restores: 1, Mirror: mirror,
	}
	pool = spec.Case{
		Name: "pool", Entries: []spec.Entry{a, entry("B", y), anyOf(1, entry("C", x, y))},
		Replicas: 2, Late: 1,
	}
	small = []spec.Case{
		three("three", 2, a, b, c), retry, crash, restore, pool,
		three("sets", 1, a, entry("B", y), entry("C", x, y)),
		three("modes", 1, entry("A", read), b, entry("C", read)),
		three("permits", 1, entry("A", permit), entry("B", permit), entry("C", permit)),
	}
	large = []spec.Case{
		{
			Name: "three, a key", Entries: []spec.Entry{a, b, keyed(c)}, Replicas: 2, Late: 2,
			Mirror: mirror,
		},
		{Name: "retry, crash", Entries: retry.Entries, Replicas: 2, Late: 2, Crashes: 1},
	}
)

func three(name string, late int, entries ...spec.Entry) spec.Case {
	return spec.Case{Name: name, Entries: entries, Replicas: 2, Late: late}
}

func story(steps []spec.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString("\n  " + s.String())
	}
	return b.String()
}

// TestEveryOrderKeepsTheProperties checks each case whole.
func TestEveryOrderKeepsTheProperties(t *testing.T) {
	cases := small
	if *whole {
		cases = append(cases, large...)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			found := spec.Model{}.Run(c, 1<<30)
			t.Logf("%d states, %d steps", found.States, found.Steps)
			if found.Broken != nil {
				t.Errorf("%v:%s", found.Broken, story(found.Story))
			}
		})
	}
}

// TestEachRuleIsNeeded: without it, a property breaks.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, m := range []struct {
		broken   spec.Rule
		on       spec.Case
		property string
	}{
		{spec.OwnNumber, three("", 2, a, b), "nothing removes"},
		{spec.MarkCompared, retry, "what a replica has learned"},
		{spec.MarkBeforeNext, retry, "one entry for a key"},
		{spec.JoinsAbsent, retry, "one entry for a key"},
		{spec.KeyUnused, retry, "one entry for a key"},
		{spec.FloorCompared, restore, "fences grow"},
		{spec.HoldsInView, retry, "one holder"},
		{spec.Trust, restore, "fences grow"},
		{spec.FloorRises, restore, "fences grow"},
		{spec.Blocked, retry, "nothing removes"},
		{spec.SameWitness, retry, "nothing removes"},
		{spec.OwnEntry, retry, "an end is of its own"},
		{spec.RenewalReads, retry, "410 is final"},
		{spec.FeedComplete, retry, "a waiter"},
		{spec.LeaseBound, crash, "a waiter"},
		{spec.TakenOnce, pool, "one holder"},
	} {
		t.Run(string(m.broken), func(t *testing.T) {
			found := spec.Model{Broken: m.broken}.Run(m.on, 1_000_000)
			t.Logf("%v:%s", found.Broken, story(found.Story))
			if found.Broken == nil || !strings.HasPrefix(found.Broken.Error(), m.property) {
				t.Errorf("found %v, want a broken property %q", found.Broken, m.property)
			}
		})
	}
}
