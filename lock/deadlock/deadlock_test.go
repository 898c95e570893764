package deadlock_test

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	cmpdiff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// playOut finds deadlocks by brute force: an entry that does not queue leaves, and one that is
// choosing is left out; an entry
// that holds releases, if its holder waits for nothing else; and so on until nothing
// changes. It returns the entries that are left.
func playOut(all []*lock.Entry, leaving map[lock.ID]bool) []lock.ID {
	m := locktest.NewModel()
	for _, e := range all {
		m.Insert(e)
	}
	gone := slices.DeleteFunc(slices.Clone(all), func(e *lock.Entry) bool {
		return m.Holds(e) || !leaving[e.ID] && !e.Tries() && !e.Choosing()
	})
	for _, e := range gone {
		m.Remove(e.ID)
	}
	for letGo(m) {
	}
	return entryIDs(m.Entries)
}

func letGo(m *locktest.Model) bool {
	for _, e := range m.Entries {
		if m.Holds(e) && !waits(m, e) {
			m.Remove(e.ID)
			return true
		}
	}
	return false
}

// waits says whether the worker of e waits for anything.
func waits(m *locktest.Model, e *lock.Entry) bool {
	return e.Named && slices.ContainsFunc(m.Entries, func(other *lock.Entry) bool {
		return sameWorker(e, other) && !m.Holds(other)
	})
}

func sameWorker(a, b *lock.Entry) bool {
	return a.Named && b.Named && a.Tenant == b.Tenant && a.Holder == b.Holder
}

func entryIDs(entries []*lock.Entry) []lock.ID {
	all := []lock.ID{}
	for _, e := range entries {
		all = append(all, e.ID)
	}
	slices.Sort(all)
	return all
}

// workerEntries generates entries of few workers on few locks, most of which
// queue. The modes of all locks but one agree.
func workerEntries(serial *int) *rapid.Generator[*lock.Entry] {
	return rapid.Custom(func(t *rapid.T) *lock.Entry {
		*serial++
		e := &lock.Entry{
			ID: lock.ID(
				"e" + strconv.Itoa(*serial),
			), Tenant: rapid.SampledFrom([]string{"t", "t", "t", "u"}).Draw(t, "tenant"),
			Holder: rapid.SampledFrom([]string{"v", "w", "x", "y", "z"}).Draw(t, "holder"),
			Named:  rapid.IntRange(0, 5).Draw(t, "named") > 0,

			OnlyNewest: rapid.Bool().Draw(t, "only newest"),
		}
		if rapid.IntRange(0, 7).Draw(t, "queues") > 0 {
			e.WaitUntil = time.Unix(1, 0)
		}
		size := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "size")
		for _, name := range rapid.Permutation([]string{"a", "b", "c", "m", "s2", "s3"}).Draw(
			t, "names",
		)[:size] {
			e.Claims = append(e.Claims, claimFor(t, name))
		}
		e.Set = size > 1
		lock.Canonical(e.Claims)
		if e.Set && rapid.IntRange(0, 2).Draw(t, "choosing") == 0 {
			e.Any = 1
			for i := range size {
				e.Order = append(e.Order, size-1-i)
			}
		}
		return e
	})
}

func claimFor(t *rapid.T, name string) lock.Claim {
	switch {
	case name == "s2":
		return lock.Claim{Name: name, Mode: lock.Semaphore, Limit: 2, Permits: 1}
	case name == "s3", name == "m" && rapid.IntRange(0, 2).Draw(t, "counts") == 0:
		c := lock.Claim{Name: name, Mode: lock.Semaphore, Limit: rapid.IntRange(2, 4).Draw(t, "limit")}
		c.Permits = rapid.IntRange(1, c.Limit).Draw(t, "permits")
		return c
	case rapid.Bool().Draw(t, "shared"):
		return lock.Claim{Name: name, Mode: lock.Shared}
	}
	return lock.Claim{Name: name, Mode: lock.Exclusive}
}

// rejectedOf is the entries that cannot stay, by brute force and from the beginning:
// one entry after the other joins, in order, and stays only if it agrees with those
// before it that do, and no entry waits forever because of it. Then the superseded ones leave.
func rejectedOf(all []*lock.Entry) map[lock.ID]bool {
	rejected := map[lock.ID]bool{}
	var joined []*lock.Entry
	for _, e := range inOrder(all) {
		joined = append(joined, e)
		if disagrees(joined[:len(joined)-1], rejected, e) || len(playOut(joined, rejected)) > 0 {
			rejected[e.ID] = true
		}
	}
	superseded := supersededOf(joined, rejected)
	for _, id := range superseded {
		rejected[id] = true
	}
	return rejected
}

// supersededOf is the waiting entries with OnlyNewest that have a later one in a queue, by
// brute force: one that queues and is not rejected.
func supersededOf(all []*lock.Entry, rejected map[lock.ID]bool) (superseded []lock.ID) {
	m := locktest.NewModel()
	for _, e := range all {
		m.Insert(e)
	}
	for _, e := range all {
		newer := slices.ContainsFunc(all, func(other *lock.Entry) bool {
			return other.OnlyNewest && !other.Tries() && !rejected[other.ID] &&
				other.Number > e.Number && other.Tenant == e.Tenant &&
				slices.ContainsFunc(e.Claims, func(c lock.Claim) bool {
					return len(lock.ClaimsOn([]*lock.Entry{other}, c.Name)) > 0
				})
		})
		if newer && e.OnlyNewest && !e.Tries() && !rejected[e.ID] && !m.Holds(e) &&
			m.Choice(e) == nil {
			superseded = append(superseded, e.ID)
		}
	}
	return superseded
}

func inOrder(all []*lock.Entry) []*lock.Entry {
	return slices.SortedFunc(slices.Values(all), func(a, b *lock.Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
}

func disagrees(before []*lock.Entry, rejected map[lock.ID]bool, e *lock.Entry) bool {
	return slices.ContainsFunc(before, func(other *lock.Entry) bool {
		return !rejected[other.ID] && other.Tenant == e.Tenant &&
			slices.ContainsFunc(e.Claims, func(c lock.Claim) bool {
				return slices.ContainsFunc(
					other.Claims, func(o lock.Claim) bool { return o.Name == c.Name && !o.Agrees(c) },
				)
			})
	})
}

// tracker runs the check on random histories beside the brute force.
type tracker struct {
	table    *deadlock.Table
	entries  []*lock.Entry
	rejected map[lock.ID]bool
	number   uint64
	serial   int
}

func newTracker() *tracker {
	return &tracker{table: deadlock.NewTable(), rejected: map[lock.ID]bool{}}
}

// Join lets an entry come, sometimes in one transaction with the one before it. What
// is said before it comes is said after it did.
func (d *tracker) Join(t *rapid.T) {
	if d.look(t); len(d.entries) == 14 {
		t.Skip("enough to go wrong, and brute force takes long")
	}
	e := workerEntries(&d.serial).Draw(t, "entry")
	if rapid.Bool().Draw(t, "sorts first") {
		e.ID = "a" + e.ID
	}
	late := *e
	late.Number = d.number + 1
	before := d.table.Cycle(&late)
	e.Number = d.number
	last := slices.ContainsFunc(
		d.entries, func(o *lock.Entry) bool { return o.Number == d.number && o.ID > e.ID },
	)
	_, clash := d.table.Clash(e)
	if d.number == 0 || d.shares(e) || rapid.Bool().Draw(t, "new number") {
		d.number++
		e.Number, last = d.number, false
	}
	if _, err := d.table.Insert(e); err != nil {
		t.Fatal(err)
	}
	d.entries = append(d.entries, e)
	d.look(t)
	if rejected := d.rejected[e.ID]; !last && rejected != (before != nil || clash) {
		t.Fatalf(
			"%s is rejected %t, and before it came its cycle was %v, its clash %t\n%s", e.ID, rejected,
			steps(before), clash, locktest.Describe(d.table),
		)
	}
}

// shares reports whether a queue of e is at the newest number.
func (d *tracker) shares(e *lock.Entry) bool {
	return slices.ContainsFunc(locktest.Refs(e), func(r lock.Ref) bool {
		q := d.table.Queue(r)
		return q != nil && q.Newest() == d.number
	})
}

// Leave lets an entry go.
func (d *tracker) Leave(t *rapid.T) {
	if len(d.entries) == 0 {
		t.Skip("empty")
	}
	i := rapid.IntRange(0, len(d.entries)-1).Draw(t, "who")
	d.table.Remove(d.entries[i].ID)
	delete(d.rejected, d.entries[i].ID)
	d.entries = slices.Delete(d.entries, i, i+1)
	if rapid.IntRange(0, 3).Draw(t, "looks") > 0 { // several changes can come before the next look
		d.look(t)
	}
}

// Choose takes a choosing entry that can choose out of its other queues.
func (d *tracker) Choose(t *rapid.T) {
	if len(d.entries) == 0 {
		t.Skip("empty")
	}
	i := rapid.IntRange(0, len(d.entries)-1).Draw(t, "who")
	kept, ok := d.table.Member(d.entries[i].ID).Choice()
	if !ok {
		t.Skip("it waits, or is not choosing")
	}
	d.entries[i] = d.entries[i].Narrowed(kept)
	if _, ok := d.table.Narrow(d.entries[i]); !ok {
		t.Fatal("it did not leave its queues")
	}
	d.look(t)
}

// look has the table detect, and holds it to the brute force: what it tells of is what
// has changed, and a table that begins with a list comes to the same.
func (d *tracker) look(t *rapid.T) {
	changed := d.table.Detect()
	for _, e := range changed {
		if d.rejected[e.ID] = !d.rejected[e.ID]; !d.rejected[e.ID] {
			delete(d.rejected, e.ID)
		}
	}
	want := rejectedOf(d.entries)
	listed := deadlock.NewTable()
	for _, e := range inOrder(d.entries) {
		if _, err := listed.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	listed.Detect()
	for name, got := range map[string]map[lock.ID]bool{
		"told": d.rejected, "followed": rejections(d.table, d.entries),
		"listed": rejections(listed, d.entries),
	} {
		if diff := cmpdiff.Diff(want, got); diff != "" {
			t.Fatalf("rejected, as %s (-want +got):\n%s%s", name, diff, locktest.Describe(d.table))
		}
	}
	if stuck := playOut(d.entries, want); len(stuck) > 0 {
		t.Fatalf("%v wait for ever\n%s", stuck, locktest.Describe(d.table))
	}
	for _, e := range d.entries {
		v := d.table.Rejection(e.ID)
		if v != nil && v.Newer != listed.Rejection(e.ID).Newer {
			t.Fatalf("%s: another entry is newer after a list", e.ID)
		}
		if v != nil && v.Clash == nil {
			d.checkCycle(t, v.Cycle, slices.Contains(changed, e))
		} else if v != nil &&
			(*v.Clash != locktest.ClaimOn(v.Against, v.Clash.Name) ||
				v.Clash.Agrees(locktest.ClaimOn(e, v.Clash.Name)) || d.disagreesOrCloses(v.Against) ||
				v.Against.Number >= e.Number) {
			t.Fatalf("%s: there is no clash with %s", e.ID, v.Against.ID)
		}
	}
}

// disagreesOrCloses reports whether an entry leaves for an earlier one.
func (d *tracker) disagreesOrCloses(e *lock.Entry) bool {
	v := d.table.Rejection(e.ID)
	return v != nil && v.Newer == nil
}

func rejections(table *deadlock.Table, all []*lock.Entry) map[lock.ID]bool {
	rejected := map[lock.ID]bool{}
	for _, e := range all {
		if table.Rejection(e.ID) != nil {
			rejected[e.ID] = true
		}
	}
	return rejected
}

// checkCycle holds every step of a cycle against the queues. The holders are as they were
// when the cycle was closed.
func (d *tracker) checkCycle(t *rapid.T, cycle []lock.Wait, closed bool) {
	for i, w := range cycle {
		next := cycle[(i+1)%len(cycle)].Waiter
		if w.Blocker != next && !sameWorker(w.Blocker, next) {
			t.Fatalf("%v: %s is in the way, and then %s waits", steps(cycle), w.Blocker.ID, next.ID)
		}
		_, waits := d.table.Entry(w.Waiter.ID)
		if _, holds := d.table.Entry(w.Blocker.ID); waits || closed && holds != w.Holds {
			t.Fatalf("%v: step %d is wrong about who holds", steps(cycle), i)
		}
		mine, other := locktest.ClaimOn(w.Waiter, w.Lock), locktest.ClaimOn(w.Blocker, w.Lock)
		before := w.Blocker.Number < w.Waiter.Number && w.Blocker.Tenant == w.Waiter.Tenant
		if !before || mine.Mode == lock.Shared && other.Mode == lock.Shared {
			t.Fatalf("%v: in step %d nobody is in the way", steps(cycle), i)
		}
	}
}

func steps(cycle []lock.Wait) []string {
	var text []string
	for _, w := range cycle {
		text = append(text, string(w.Waiter.ID)+" waits for "+w.Lock+" of "+string(w.Blocker.ID))
	}
	return text
}

func deadlocksMatchBruteForce(t *rapid.T) {
	d := newTracker()
	t.Repeat(map[string]func(*rapid.T){
		"Join":      d.Join,
		"JoinMore":  d.Join,
		"JoinAgain": d.Join,
		"Leave":     d.Leave,
		"Choose":    d.Choose,
	})
}

func TestDeadlocksMatchBruteForce(t *testing.T) { rapid.Check(t, deadlocksMatchBruteForce) }

func FuzzDeadlocks(f *testing.F) { f.Fuzz(rapid.MakeFuzz(deadlocksMatchBruteForce)) }

// named makes an entry of a worker that queues for the locks.
func named(id lock.ID, number uint64, holder string, locks ...string) *lock.Entry {
	e := locktest.Entry(id, number, locks...)
	e.Holder, e.Named, e.WaitUntil = holder, true, time.Unix(1, 0)
	return e
}

func shared(e *lock.Entry) *lock.Entry {
	for i := range e.Claims {
		e.Claims[i].Mode = lock.Shared
	}
	return e
}

func counted(e *lock.Entry, limit int) *lock.Entry {
	for i := range e.Claims {
		e.Claims[i].Mode, e.Claims[i].Limit, e.Claims[i].Permits = lock.Semaphore, limit, 1
	}
	return e
}

// wide makes an entry of semaphores take several permits.
func wide(permits int, e *lock.Entry) *lock.Entry {
	for i := range e.Claims {
		e.Claims[i].Permits = permits
	}
	return e
}

func unnamed(e *lock.Entry) *lock.Entry { e.Named = false; return e }

func tableOf(t *testing.T, entries ...*lock.Entry) *deadlock.Table {
	t.Helper()
	table := deadlock.NewTable()
	for _, e := range entries {
		if _, err := table.Insert(e); err != nil {
			t.Fatalf("Insert(%s): %v", e.ID, err)
		}
	}
	return table
}

func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		there []*lock.Entry
		e     *lock.Entry
		want  []string
	}{
		"two workers cross": {
			[]*lock.Entry{named("1", 1, "v", "a"), named("2", 2, "w", "b"), named("3", 3, "v", "b")},
			named("4", 4, "w", "a"),
			[]string{"4 waits for a of 1", "3 waits for b of 2"},
		},
		"one worker waits for itself": {
			[]*lock.Entry{named("1", 1, "v", "a")}, named("2", 2, "v", "a"), []string{"2 waits for a of 1"},
		},
		"a reader behind a writer behind itself": {
			[]*lock.Entry{shared(named("1", 1, "v", "a")), unnamed(named("2", 2, "w", "a"))},
			shared(named("3", 3, "v", "a")),
			[]string{"3 waits for a of 2", "2 waits for a of 1"},
		},
		"a semaphore with a unit that comes free": {
			[]*lock.Entry{
				counted(named("1", 1, "v", "a"), 2), counted(named("2", 2, "x", "a"), 2),
				named("3", 3, "w", "b"), named("4", 4, "v", "b"),
			},
			counted(named("5", 5, "w", "a"), 2), nil,
		},
		"a semaphore of which nothing comes free": {
			[]*lock.Entry{
				counted(named("1", 1, "v", "a"), 2), counted(named("2", 2, "x", "a"), 2),
				named("3", 3, "w", "b"), named("4", 4, "v", "b"), named("5", 5, "x", "b"),
			},
			counted(named("6", 6, "w", "a"), 2),
			[]string{"6 waits for a of 1", "4 waits for b of 3"},
		},
		"a semaphore with enough permits for what is asked": {
			[]*lock.Entry{
				wide(2, counted(named("1", 1, "v", "a"), 5)), wide(3, counted(named("2", 2, "x", "a"), 5)),
				named("3", 3, "w", "b"), named("4", 4, "v", "b"),
			},
			wide(3, counted(named("5", 5, "w", "a"), 5)), nil,
		},
		"a semaphore with too few permits for what is asked": {
			[]*lock.Entry{
				wide(2, counted(named("1", 1, "v", "a"), 5)), wide(3, counted(named("2", 2, "x", "a"), 5)),
				named("3", 3, "w", "b"), named("4", 4, "v", "b"),
			},
			wide(4, counted(named("5", 5, "w", "a"), 5)),
			[]string{"5 waits for a of 1", "4 waits for b of 3"},
		},
		"a wide request that none passes": {
			[]*lock.Entry{
				counted(named("1", 1, "v", "a"), 5), wide(5, counted(named("2", 2, "x", "a"), 5)),
			},
			counted(named("3", 3, "v", "a"), 5),
			[]string{"3 waits for a of 1"},
		},
		"another tenant's worker of the same name": {
			[]*lock.Entry{named("1", 1, "v", "a"), named("2", 2, "w", "b"), named("3", 3, "v", "b")},
			ofTenant("u", named("4", 4, "w", "a")), nil,
		},
		"a holder without a name": {
			[]*lock.Entry{
				unnamed(named("1", 1, "v", "a")), named("2", 2, "w", "b"), unnamed(named("3", 3, "v", "b")),
			},
			named("4", 4, "w", "a"), nil,
		},
		"behind somebody who does not queue": {
			[]*lock.Entry{unnamed(shared(named("1", 1, "v", "a"))), tries(named("2", 2, "w", "a"))},
			shared(named("3", 3, "w", "a")), nil,
		},
		"sets in the way of each other": {
			[]*lock.Entry{
				named("1", 1, "v", "a", "b"), named("2", 2, "w", "c", "d"), named("3", 3, "v", "d", "e"),
			},
			named("4", 4, "w", "b", "f"),
			[]string{"4 waits for b of 1", "3 waits for d of 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := tableOf(t, c.there...)
			if diff := cmpdiff.Diff(c.want, steps(table.Cycle(c.e))); diff != "" {
				t.Errorf("before it joins (-want +got):\n%s", diff)
			}
			if _, err := table.Insert(c.e); err != nil {
				t.Fatal(err)
			}
			if diff := cmpdiff.Diff(c.want, steps(table.Cycle(c.e))); diff != "" {
				t.Errorf("after it joined (-want +got):\n%s", diff)
			}
		})
	}
}

func ofTenant(tenant string, e *lock.Entry) *lock.Entry { e.Tenant = tenant; return e }

func tries(e *lock.Entry) *lock.Entry { e.WaitUntil = time.Time{}; return e }

// Two entries that close a cycle in one transaction share a number. Whichever a
// replica sees first, the one with the greater id is rejected, and no other.
func TestTheLastOfACycleIsRejected(t *testing.T) {
	there := []*lock.Entry{named("1", 1, "v", "a"), named("2", 2, "w", "b")}
	for _, order := range [][]*lock.Entry{
		{named("x", 3, "v", "b"), named("y", 3, "w", "a")},
		{named("y", 3, "w", "a"), named("x", 3, "v", "b")},
	} {
		table := tableOf(t, there...)
		var rejected []lock.ID
		for _, e := range order {
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
			rejected = append(rejected, locktest.IDs(table.Detect())...)
		}
		if !slices.Equal(rejected, []lock.ID{"y"}) {
			t.Errorf("rejected %v, want [y]", rejected)
		}
	}
}

// A rejected entry that waits decides nothing; once it holds it does.
func TestClashPassesOverTheRejected(t *testing.T) {
	two := counted(named("2", 2, "v", "a"), 2)
	table := tableOf(t, named("1", 1, "u", "a"), two)
	if rejected := locktest.IDs(table.Detect()); !slices.Equal(rejected, []lock.ID{"2"}) {
		t.Fatalf("rejected %v, want [2]", rejected)
	}
	if _, clash := table.Clash(named("4", 4, "x", "a")); clash {
		t.Error("it clashes behind a rejected entry that waits")
	}
	table.Remove("1") // before the rejected one was taken back
	if _, clash := table.Clash(two); clash {
		t.Error("a holder clashes with those behind it")
	}
	if _, clash := table.Clash(named("3", 3, "w", "a")); !clash {
		t.Error("it agrees with a holder of another mode")
	}
}

func TestClash(t *testing.T) {
	x, s := named("x", 9, "v", "a"), shared(named("s", 9, "v", "a"))
	two, three := counted(named("2", 9, "v", "a"), 2), counted(named("3", 9, "v", "a"), 3)
	holder := func(e *lock.Entry) *lock.Entry { c := *e; c.ID, c.Number = "holder", 1; return &c }
	for name, c := range map[string]struct {
		holder, e *lock.Entry
		want      bool
	}{
		"exclusive and shared agree":     {x, s, false},
		"shared and exclusive agree":     {s, x, false},
		"semaphores of one limit agree":  {two, two, false},
		"semaphores of two limits agree": {two, three, false},
		"semaphore on exclusive":         {x, two, true},
		"shared on a semaphore":          {two, s, true},
	} {
		t.Run(name, func(t *testing.T) {
			table := tableOf(t, holder(c.holder))
			if _, clash := table.Clash(c.e); clash != c.want {
				t.Errorf("Clash = %t, want %t", clash, c.want)
			}
			if _, err := table.Insert(c.e); err != nil {
				t.Fatal(err)
			}
		})
	}
}
