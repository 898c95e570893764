package waits_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/faults/waits"
)

// ask makes a request of "holder: lock lock"; a lock may be "r/a" for reading or
// "2/a" for a semaphore of two.
func ask(id int, text string) *waits.Request {
	holder, locks, _ := strings.Cut(text, ": ")
	r := &waits.Request{ID: id, Holder: holder}
	for name := range strings.FieldsSeq(locks) {
		c := waits.Claim{Name: name, Mode: "exclusive"}
		if rest, ok := strings.CutPrefix(name, "r/"); ok {
			c.Name, c.Mode = rest, "shared"
		} else if rest, ok := strings.CutPrefix(name, "2/"); ok {
			c.Name, c.Mode, c.Limit = rest, "semaphore", 2
		}
		r.Claims = append(r.Claims, c)
	}
	return r
}

func TestWorld(t *testing.T) {
	for name, c := range map[string]struct {
		there []string
		last  string
		want  waits.Verdict
	}{
		"a free lock":                        {nil, "v: a", waits.Granted},
		"a held lock":                        {[]string{"v: a"}, "w: a", waits.Waits},
		"readers":                            {[]string{"v: r/a"}, "w: r/a", waits.Granted},
		"a reader behind a writer":           {[]string{"v: r/a", "w: a"}, "x: r/a", waits.Waits},
		"a unit is free":                     {[]string{"v: 2/a"}, "w: 2/a", waits.Granted},
		"no unit is free":                    {[]string{"v: 2/a", "w: 2/a"}, "x: 2/a", waits.Waits},
		"two cross":                          {[]string{"v: a", "w: b", "v: b"}, "w: a", waits.Deadlock},
		"two that give no names":             {[]string{": a", ": b", ": b"}, ": a", waits.Waits},
		"one waits for itself":               {[]string{"v: a"}, "v: a", waits.Deadlock},
		"through a queue":                    {[]string{"v: r/a", ": a"}, "v: r/a", waits.Deadlock},
		"one unit of two comes free":         {[]string{"v: 2/a", "x: 2/a", "w: b", "v: b"}, "w: 2/a", waits.Waits},
		"no unit of two comes free":          {[]string{"v: 2/a", "x: 2/a", "w: b", "v: b", "x: b"}, "w: 2/a", waits.Deadlock},
		"a set holds one lock and waits":     {[]string{"v: a", "w: a b"}, "v: b", waits.Deadlock},
		"a set is not in its own way":        {[]string{"v: a"}, "w: a b", waits.Waits},
		"a ring of three":                    {[]string{"v: a", "w: b", "x: c", "v: b", "w: c"}, "x: a", waits.Deadlock},
		"a ring of three with a gap":         {[]string{"v: a", "w: b", "x: c", "v: b"}, "x: a", waits.Waits},
		"a holder that waits twice, in vain": {[]string{"v: a", "w: b", "x: c", "v: b", "v: c"}, "w: a", waits.Deadlock},
	} {
		t.Run(name, func(t *testing.T) {
			var w waits.World
			for i, text := range c.there {
				var v waits.Verdict
				if w, v = w.Come(ask(i, text)); v == waits.Deadlock {
					t.Fatalf("%s is refused", text)
				}
			}
			if _, got := w.Come(ask(99, c.last)); got != c.want {
				t.Errorf("%s: %s, want %s", c.last, got, c.want)
			}
		})
	}
}

func TestQueue(t *testing.T) {
	var w waits.World
	for i, text := range []string{"v: r/a", "w: b", "x: r/a b", "y: r/a"} {
		w, _ = w.Come(ask(i, text))
	}
	if holders, waiters := w.Queue("a"); !slices.Equal(holders, []int{0, 3}) || !slices.Equal(waiters, []int{2}) {
		t.Errorf("a is held by %v, %v wait", holders, waiters)
	}
}

func TestOrder(t *testing.T) {
	world := func(all ...int) string {
		var w waits.World
		asks := map[int]*waits.Request{1: ask(1, "v: a"), 2: ask(2, "w: a b"), 3: ask(3, "x: b"), 4: ask(4, "y: c")}
		for _, id := range all {
			w, _ = w.Come(asks[id])
		}
		return w.Order()
	}
	if world(1, 2, 3, 4) != world(4, 1, 2, 3) {
		t.Error("the order of those who do not meet matters")
	}
	if world(1, 2, 3, 4) == world(2, 1, 3, 4) || world(1, 2, 3, 4) == world(1, 3, 2, 4) {
		t.Error("the order of those who meet does not matter")
	}
}

func TestGoing(t *testing.T) {
	var w waits.World
	for i, text := range []string{"v: a", "w: a b", "x: b"} {
		w, _ = w.Come(ask(i, text))
	}
	if _, holds := w.Has(2); holds {
		t.Error("who came later passes a set")
	}
	w = w.Go(0)
	if _, holds := w.Has(1); !holds {
		t.Errorf("the set does not hold:\n%v", w)
	}
	if r, _ := w.Go(1).Has(1); r != nil {
		t.Error("who went is there")
	}
}
