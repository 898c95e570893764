package order_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
	"github.com/fencepost/fencepost/lock/order"
)

// failer is a test or a property.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// history has holders take locks in a table, and a Graph learn from that.
type history struct {
	t      failer
	table  *deadlock.Table
	orders *order.Graph
	number uint64
	now    time.Time
}

func newHistory(t failer) *history {
	t.Helper()
	return &history{
		t: t, table: deadlock.NewTable(), orders: order.NewGraph(), now: time.Unix(1_700_000_000, 0),
	}
}

// takes lets a holder take locks one after the other, and then give all back. It
// returns the cycles that came to light.
func (s *history) takes(tenant, holder string, locks ...string) []string {
	s.t.Helper()
	var cycles []string
	var ids []lock.ID
	for _, name := range locks {
		s.number++
		s.now = s.now.Add(time.Second)
		e := named(
			lock.ID(strconv.FormatUint(s.number, 10)),
			s.number,
			holder,
			strings.Split(name, "+")...)
		e.Tenant = tenant
		if subject, name, is := strings.Cut(holder, "/"); is {
			e.Subject, e.Holder = subject, name
		}
		if holds, err := s.table.Insert(e); err != nil || !holds {
			s.t.Fatalf("%s does not get %s: %v", holder, name, err)
		}
		for _, c := range s.orders.Granted(e, s.table.AlsoHeld(e), s.now) {
			cycles = append(cycles, ringOf(c))
		}
		ids = append(ids, e.ID)
	}
	for _, id := range ids {
		s.table.Remove(id)
	}
	return cycles
}

func names() []string { return []string{"a", "b", "c", "d", "e", "f", "g", "h"} }

// named returns an exclusive entry of a holder with a name.
func named(id lock.ID, number uint64, holder string, locks ...string) *lock.Entry {
	e := &lock.Entry{
		ID: id, Tenant: "t", Set: len(locks) > 1, Holder: holder, Named: true, Number: number,
		WaitUntil: time.Unix(1, 0),
	}
	for _, name := range locks {
		e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	lock.Canonical(e.Claims)
	return e
}

func ringOf(c order.Contradiction) string {
	text := ""
	for _, side := range c.Steps {
		text += fmt.Sprintf("%s->%s by %s; ", side.From, side.To, side.Holder)
	}
	return strings.TrimSuffix(text, "; ")
}

func TestOrdersThatContradict(t *testing.T) {
	for name, c := range map[string]struct {
		habits [][]string // each a holder and the locks that it takes
		want   []string
	}{
		"two ways": {
			[][]string{{"v", "a", "b"}, {"w", "b", "a"}}, []string{"b->a by w; a->b by v"},
		},
		"one way is fine": {[][]string{{"v", "a", "b"}, {"w", "a", "b", "c"}}, nil},
		"reported once": {
			[][]string{{"v", "a", "b"}, {"w", "b", "a"}, {"x", "a", "b"}, {"y", "b", "a"}},
			[]string{"b->a by w; a->b by v"},
		},
		"one holder alone cannot wait for itself": {
			[][]string{{"v", "a", "b"}, {"v", "b", "a"}}, nil,
		},
		"until another does it too": {
			[][]string{{"v", "a", "b"}, {"v", "b", "a"}, {"w", "b", "a"}},
			[]string{"b->a by w; a->b by v"},
		},
		"a cycle of three": {
			[][]string{{"v", "a", "b"}, {"w", "b", "c"}, {"x", "c", "a"}},
			[]string{"c->a by x; a->b by v; b->c by w"},
		},
		"classes": {
			[][]string{{"v", "orders:1", "stock:7"}, {"w", "stock:8", "orders:2"}},
			[]string{"stock:*->orders:* by w; orders:*->stock:* by v"},
		},
		"within a class, always ascending": {
			[][]string{{"v", "o:1", "o:2"}, {"w", "o:2", "o:3"}}, nil,
		},
		"within a class, both ways": {
			[][]string{{"v", "o:1", "o:2"}, {"w", "o:5", "o:4"}},
			[]string{
				"o:* (greater name)->o:* (smaller name) by w; o:* (smaller name)->o:* (greater name) by v",
			},
		},
		"one name, two subjects": {
			[][]string{{"one/w", "a", "b"}, {"two/w", "b", "a"}}, []string{"b->a by w; a->b by w"},
		},
		"a set has no order within": {[][]string{{"v", "a+b"}, {"w", "b+a"}}, nil},
		"a set after a lock": {
			[][]string{{"v", "a", "b+c"}, {"w", "c", "a"}}, []string{"c->a by w; a->c by v"},
		},
		"a longer cycle, where the shorter one is of one holder": {
			[][]string{
				{"v", "b", "c"},
				{"w", "c", "b"},
				{"v", "b", "a"},
				{"w", "b", "d"},
				{"w", "d", "e"},
				{"w", "e", "f"},
				{"w", "f", "a"},
				{"v", "a", "b"},
			},
			[]string{"c->b by w; b->c by v", "a->b by v; b->d by w; d->e by w; e->f by w; f->a by w"},
		},
		"two cycles that share the lock where they close, each of one holder": {
			[][]string{{"x", "a", "d"}, {"v", "d", "b"}, {"v", "b", "d"}, {"x", "d", "a"}}, nil,
		},
		"two cycles that share a lock, each of one holder": {
			[][]string{{"v", "a", "b"}, {"v", "b", "a"}, {"w", "b", "c"}, {"w", "c", "b"}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHistory(t)
			var got []string
			for _, h := range c.habits {
				got = append(got, s.takes("t", h[0], h[1:]...)...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("cycles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrdersKeepTenantsApart(t *testing.T) {
	s := newHistory(t)
	if cycles := append(s.takes("t", "v", "a", "b"), s.takes("u", "w", "b", "a")...); cycles != nil {
		t.Errorf("cycles over two tenants: %v", cycles)
	}
	if known, total, _ := s.orders.Edges("u", 10); total != 1 || len(known) != 1 ||
		known[0].Tenant != "u" {
		t.Errorf("Known(u) = %v of %d, want its one order", known, total)
	}
	if _, total, _ := s.orders.Edges("", 10); total != 2 {
		t.Errorf("%d orders in all, want 2", total)
	}
}

func TestContradictionHasAnExampleOfEachSide(t *testing.T) {
	s := newHistory(t)
	s.takes("t", "v", "orders:1", "stock:7")
	s.takes("t", "w", "stock:8", "orders:2")
	want := []order.Contradiction{
		{Tenant: "t", Found: time.Unix(1_700_000_004, 0), Steps: []order.Step{
			{
				From: "stock:*",
				To:   "orders:*",
				Example: order.Example{
					Holder: "w", Held: "stock:8", Taken: "orders:2", At: time.Unix(1_700_000_004, 0),
				},
			},
			{
				From: "orders:*",
				To:   "stock:*",
				Example: order.Example{
					Holder: "v", Held: "orders:1", Taken: "stock:7", At: time.Unix(1_700_000_002, 0),
				},
			},
		}},
	}
	if diff := cmp.Diff(want, s.orders.Contradictions("", 10)); diff != "" {
		t.Errorf("Contradictions (-want +got):\n%s", diff)
	}
	if got := s.orders.Contradictions("u", 10); got != nil {
		t.Errorf("another tenant has %v", got)
	}
}

func TestOrdersAreBounded(t *testing.T) {
	s := newHistory(t)
	for i := range 12 {
		for j := range 1100 {
			s.takes(fmt.Sprint("tenant", i), "v", fmt.Sprint("a", j), fmt.Sprint("b", j))
		}
	}
	_, all, dropped := s.orders.Edges("", 0)
	_, one, _ := s.orders.Edges("tenant11", 0)
	if all != 10_000 || one != 1_000 || dropped != 12*1100-10_000 {
		t.Errorf("%d orders in all, %d of a tenant, %d dropped", all, one, dropped)
	}
	if latest, _, _ := s.orders.Edges("tenant11", 1); latest[0].From != "a1099" {
		t.Errorf("the latest order is from %s, want a1099", latest[0].From)
	}
}

// Two sets of 32 could teach 1024 steps.
func TestOneGrantTeachesLittle(t *testing.T) {
	s := newHistory(t)
	set := func(prefix string) string {
		var all []string
		for i := range 32 {
			all = append(all, fmt.Sprintf("%s%02d", prefix, i))
		}
		return strings.Join(all, "+")
	}
	s.takes("t", "v", set("a"), set("b"))
	if _, n, _ := s.orders.Edges("t", 0); n != 64 {
		t.Errorf("%d steps learnt at once, want 64", n)
	}
}

// crosses lets two holders of the tenant take two locks in both orders.
func (s *history) crosses(tenant string, i int) []string {
	a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
	return append(s.takes(tenant, "v", a, b), s.takes(tenant, "w", b, a)...)
}

func TestRingsAreBounded(t *testing.T) {
	s := newHistory(t)
	for i := range 1200 {
		if got, want := len(s.crosses("t", i)), 1; got != want && i < 1000 || got != 0 && i >= 1000 {
			t.Fatalf("cycle %d is reported %d times", i, got)
		}
	}
	if n := len(s.orders.Contradictions("", 5000)); n != 1000 {
		t.Errorf("%d contradictions are kept, want 1000", n)
	}
	if got := s.crosses("another", 0); len(got) != 1 {
		t.Errorf("of another tenant: %v, want one cycle", got)
	}
}

// What had to make room for others is still not reported again.
func TestRingsAreReportedOnce(t *testing.T) {
	s := newHistory(t)
	for _, tenant := range []string{"t", "u"} {
		for i := range 700 {
			if got := s.crosses(tenant, i); len(got) != 1 {
				t.Fatalf("cycle %d of %s: %v", i, tenant, got)
			}
		}
	}
	if n := len(s.orders.Contradictions("t", 5000)); n >= 700 {
		t.Fatalf("all %d contradictions of the tenant are kept; the test does not do what it should", n)
	}
	for i := range 200 { // orders and contradictions of these are forgotten
		if got := s.crosses("t", i); len(got) != 0 {
			t.Fatalf("cycle %d is reported again: %v", i, got)
		}
	}
}

// A cycle of very many steps says nothing to anybody, and is very much to keep.
func TestLongRingsAreNotReported(t *testing.T) {
	for length, want := range map[int]int{32: 1, 33: 0, 500: 0} {
		s := newHistory(t)
		var got []string
		for i := range length {
			got = append(
				got,
				s.takes("t", fmt.Sprint("v", i), fmt.Sprint("a", i), fmt.Sprint("a", (i+1)%length))...)
		}
		if len(got) != want {
			t.Errorf("a cycle of %d is reported %d times, want %d", length, len(got), want)
		}
	}
}

// A tenant with very many contradictions does not displace another's.
func TestRingsOfOthersAreKept(t *testing.T) {
	s := newHistory(t)
	s.takes("quiet", "v", "a", "b")
	s.takes("quiet", "w", "b", "a")
	for i := range 1200 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		s.takes("loud", "v", a, b)
		s.takes("loud", "w", b, a)
	}
	if n := len(s.orders.Contradictions("quiet", 10)); n != 1 {
		t.Errorf("%d contradictions of the quiet tenant are kept, want 1", n)
	}
	if got := s.takes("quiet", "x", "b", "a"); got != nil {
		t.Errorf("it is reported again: %v", got)
	}
}

// When every step is by another holder, a cycle is reported exactly if a step
// closes one, and whatever is reported is a cycle.
func TestRingsMatchBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders, table := order.NewGraph(), deadlock.NewTable()
		known := map[[2]string]bool{}
		number := uint64(0)
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			two := rapid.Permutation(names()).Draw(t, "locks")[:2]
			step := [2]string{two[0], two[1]}
			closes := !known[step] && leads(known, step[1], step[0])
			known[step] = true
			var found []order.Contradiction
			var ids []lock.ID
			for _, name := range step {
				number++
				e := named(lock.ID(fmt.Sprint(number)), number, fmt.Sprint("w", i), name)
				if _, err := table.Insert(e); err != nil {
					t.Fatal(err)
				}
				found = append(found, orders.Granted(e, table.AlsoHeld(e), time.Unix(int64(i), 0))...)
				ids = append(ids, e.ID)
			}
			for _, id := range ids {
				table.Remove(id)
			}
			if closes && len(found) == 0 {
				t.Fatalf("%v closes a cycle and none is reported", step)
			}
			for _, c := range found {
				checkRing(t, known, c)
			}
		}
	})
}

// When few holders take steps, each that closes cycles which are not all of one
// holder is in a cycle that was reported, then or before.
func TestRingsOfFewHoldersMatchBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newHistory(t)
		known, reported := map[[2]string][]string{}, map[[2]string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			two := rapid.Permutation(names()[:6]).Draw(t, "locks")[:2]
			step, holder := [2]string{two[0], two[1]}, rapid.SampledFrom([]string{"v", "w", "x"}).
				Draw(t, "holder")
			fresh := len(known[step]) < 2 && !slices.Contains(known[step], holder)
			if fresh {
				known[step] = append(known[step], holder)
			}
			s.takes("t", holder, two[0], two[1])
			for _, c := range s.orders.Contradictions("t", 1000) {
				for _, side := range c.Steps {
					reported[[2]string{side.From, side.To}] = true
				}
			}
			if fresh && closes(known, []string{step[0], step[1]}, known[step]) && !reported[step] {
				t.Fatalf(
					"%s takes %v: that is in a cycle of several holders and none is reported\n%v", holder, step,
					known,
				)
			}
		}
		for _, c := range s.orders.Contradictions("t", 1000) {
			checkRing(t, keysOf(known), c)
		}
	})
}

// closes says whether the way, which those holders took, leads back to where it
// began without passing anything twice, and not all of it is one holder's alone.
func closes(known map[[2]string][]string, way []string, holders []string) bool {
	last := way[len(way)-1]
	for step, by := range known {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(by), holders...))))
		switch {
		case step[0] != last:
		case step[1] == way[0]:
			if len(all) > 1 {
				return true
			}
		case !slices.Contains(way, step[1]) && closes(known, append(slices.Clone(way), step[1]), all):
			return true
		}
	}
	return false
}

func keysOf(known map[[2]string][]string) map[[2]string]bool {
	keys := map[[2]string]bool{}
	for step := range known {
		keys[step] = true
	}
	return keys
}

// leads says whether steps lead from one lock to another.
func leads(known map[[2]string]bool, from, to string) bool {
	been := map[string]bool{}
	var walk func(string) bool
	walk = func(at string) bool {
		if at == to {
			return true
		}
		been[at] = true
		for step := range known {
			if step[0] == at && !been[step[1]] && walk(step[1]) {
				return true
			}
		}
		return false
	}
	return walk(from)
}

func checkRing(t *rapid.T, known map[[2]string]bool, c order.Contradiction) {
	var passed []string
	holders := map[string]bool{}
	for i, side := range c.Steps {
		if !known[[2]string{side.From, side.To}] || side.To != c.Steps[(i+1)%len(c.Steps)].From ||
			slices.Contains(passed, side.From) {
			t.Fatalf("%s is not a cycle of what happened", ringOf(c))
		}
		passed = append(passed, side.From)
		holders[side.Holder] = true
	}
	if len(holders) < 2 {
		t.Fatalf("%s is by one holder alone", ringOf(c))
	}
}

// TestClasses: what stands before the last colon names the class of a lock, as findings show it.
func TestClasses(t *testing.T) {
	for name, want := range map[string]string{
		"orders:42": "orders:*", "a:b:c": "a:b:*", "plain": "plain", "x:": "x:*",
	} {
		s := newHistory(t)
		s.takes("t", "v", name, "other")
		edges, _, _ := s.orders.Edges("t", 10)
		if len(edges) != 1 || edges[0].From != want {
			t.Errorf("%s is of %+v, want %s", name, edges, want)
		}
	}
}
