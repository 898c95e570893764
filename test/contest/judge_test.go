package contest_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
)

// contest is the workers and what they write to.
type contest struct {
	t        *testing.T
	resource *resource
	workers  []*worker
	all      sync.WaitGroup
}

// soon is how long after a pause a worker may go on from where it was stopped.
const soon = time.Second

// tally is what became of the rounds of a language.
type tally struct {
	written, stale, lost, failed int

	pauses   int
	overdue  int     // work that was stopped after a pause beyond the deadline
	slipped  int     // writes that were sent all the same, after such a pause
	leastPut float64 // that was left for a write of another moment
	leastEnd float64 // that was left when the deadline stopped the work at another moment
}

// enough reports whether each language got on, and there were enough pauses and kills.
func (c *contest) enough(killed drive.Killed) bool {
	written, pauses := least()
	all := 0
	for _, language := range c.languages() {
		t := c.tally(language)
		if all += t.pauses; t.written < written {
			return false
		}
	}
	return all >= pauses && killed.Replicas > 0 && c.sum(false).lost > 0
}

func (c *contest) languages() (names []string) {
	for _, w := range c.workers {
		if !slices.Contains(names, w.language) {
			names = append(names, w.language)
		}
	}
	return names
}

func (c *contest) tally(language string) tally {
	t := tally{leastPut: math.Inf(1), leastEnd: math.Inf(1)}
	for _, w := range c.workers {
		if w.language == language {
			c.count(w, &t)
		}
	}
	c.resource.mu.Lock()
	defer c.resource.mu.Unlock()
	for _, p := range c.resource.puts {
		switch {
		case p.worker.language != language:
		case p.left >= margin.Seconds():
			t.leastPut = min(t.leastPut, p.left)
		case p.worker.wasStopped(p.at, soon):
			t.slipped++
		default:
			t.leastPut = min(t.leastPut, p.left)
		}
	}
	return t
}

// count adds the rounds of a worker.
func (c *contest) count(w *worker, t *tally) {
	w.mu.Lock()
	rounds := slices.Clone(w.rounds)
	t.pauses += len(w.pauses)
	w.mu.Unlock()
	for _, r := range rounds {
		switch r.Outcome {
		case "written":
			t.written++
		case "stale":
			t.stale++
		case "lost":
			t.lost++
			switch {
			case r.Left == nil:
			case !w.wasStopped(r.at, soon):
				t.leastEnd = min(t.leastEnd, *r.Left)
			case *r.Left < margin.Seconds():
				t.overdue++
			}
		default:
			t.failed++
		}
	}
}

// counts are of the values that check fences, or of the others.
type counts struct{ written, late, lost int }

func (c *contest) sum(checks bool) (all counts) {
	for _, v := range c.resource.values {
		v.mu.Lock()
		if v.checks == checks {
			all.written, all.late, all.lost = all.written+v.written, all.late+v.late, all.lost+v.lost
		}
		v.mu.Unlock()
	}
	return all
}

// judge holds what was seen against what has to be so.
func (c *contest) judge(killed drive.Killed) {
	c.t.Helper()
	checked, unchecked := c.sum(true), c.sum(false)
	c.t.Logf("%v\n%s", killed, c.table())
	c.t.Logf("fences checked: %d writes, %d late ones refused, %d updates lost",
		checked.written, checked.late, checked.lost)
	c.t.Logf("not checked: %d writes, %d late ones written, %d updates lost",
		unchecked.written, unchecked.late, unchecked.lost)
	if checked.lost > 0 {
		c.t.Errorf("%d updates are lost although fences are checked", checked.lost)
	}
	if !c.enough(killed) {
		c.t.Error("too little happened for the contest to count")
	}
	for _, language := range c.languages() {
		if t := c.tally(language); t.leastPut < margin.Seconds() {
			c.t.Errorf("%s sent a write with %.3f s left, and was not stopped", language, t.leastPut)
		} else if t.leastEnd < 0 {
			c.t.Errorf("%s went on for %.3f s after the lease, and was not stopped", language, -t.leastEnd)
		} else if t.slipped > 1+t.overdue/20 {
			c.t.Errorf("%s sent %d writes after pauses beyond the deadline", language, t.slipped)
		}
	}
}

func (c *contest) table() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\twritten\tstale\tlost\tfailed\tpauses\toverdue\tslipped\tleast left: write\tstopped")
	for _, language := range c.languages() {
		t := c.tally(language)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", language, t.written, t.stale,
			t.lost, t.failed, t.pauses, t.overdue, t.slipped, seconds(t.leastPut), seconds(t.leastEnd))
	}
	_ = w.Flush()
	return out.String()
}

func seconds(s float64) string {
	if math.IsInf(s, 1) {
		return "-"
	}
	return fmt.Sprintf("%.3f", s)
}
