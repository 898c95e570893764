package lock_test

import (
	"maps"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// machine drives a table and the model side by side.
type machine struct {
	table  *lock.Table
	model  *locktest.Model
	number uint64
	serial int
	held   map[lock.ID]bool // entries that have held and were not removed since
}

func newMachine() *machine {
	return &machine{table: lock.NewTable(), model: locktest.NewModel(), held: map[lock.ID]bool{}}
}

// Insert adds an entry with a new number, or with the newest one again if no
// queue is shared, as independent writes in one transaction do.
func (m *machine) Insert(t *rapid.T) {
	e := entries(&m.serial).Draw(t, "entry")
	if n := len(e.Claims); n > 1 && rapid.Bool().Draw(t, "choosing") {
		e.Any = rapid.IntRange(1, n).Draw(t, "any")
		for i := range n {
			e.Order = append(e.Order, n-1-i)
		}
	}
	e.Number = m.number
	if m.number == 0 || !m.model.Accepts(e) || rapid.Bool().Draw(t, "new number") {
		m.number += uint64(rapid.IntRange(1, 3).Draw(t, "step"))
		e.Number = m.number
	}
	holds, err := m.table.Insert(e)
	m.model.Insert(e)
	if want := m.model.Holds(e); err != nil || holds != want {
		t.Fatalf("Insert(%v) = %t, %v, want %t\n%s", e, holds, err, want, locktest.Describe(m.table))
	}
}

// InsertAgain repeats an entry that is there.
func (m *machine) InsertAgain(t *rapid.T) {
	known := m.draw(t)
	again := *known
	again.Number = m.number + 1
	holds, err := m.table.Insert(&again)
	if want := m.model.Holds(known); err != nil || holds != want {
		t.Fatalf("Insert(%s again) = %t, %v, want %t", known.ID, holds, err, want)
	}
	if got, _ := m.table.Entry(known.ID); got != known {
		t.Fatalf("Insert(%s again) replaced the entry", known.ID)
	}
}

// InsertLate tries a number that a queue has passed already.
func (m *machine) InsertLate(t *rapid.T) {
	e := entries(&m.serial).Draw(t, "entry")
	e.Number = uint64(rapid.IntRange(1, int(m.number)+1).Draw(t, "number"))
	if m.model.Accepts(e) {
		t.Skip("in order")
	}
	if holds, err := m.table.Insert(e); err == nil || holds {
		t.Fatalf("Insert(%v) = %t, %v, want an error\n%s", e, holds, err, locktest.Describe(m.table))
	}
}

func (m *machine) Remove(t *rapid.T) {
	e := m.draw(t)
	before, wasHeld := m.model.Holders(), m.model.Holds(e)
	removed, held, granted := m.table.Remove(e.ID)
	m.model.Remove(e.ID)
	delete(m.held, e.ID)
	if removed != e || held != wasHeld {
		t.Fatalf("Remove(%s) = %v, %t, want %v, %t", e.ID, removed, held, e, wasHeld)
	}
	m.checkGranted(t, before, granted)
}

// Narrow takes a choosing entry that is in enough fronts out of its other queues.
func (m *machine) Narrow(t *rapid.T) {
	e := m.draw(t)
	kept, ok := m.table.Member(e.ID).Choice()
	if diff := diff.Diff(m.model.Choice(e), kept); ok != (kept != nil) || diff != "" {
		t.Fatalf("%s may keep (-want +got):\n%s%s", e.ID, diff, locktest.Describe(m.table))
	}
	if !ok {
		t.Skip("it has to wait")
	}
	narrow := e.Narrowed(kept)
	before := m.model.Holders()
	granted, ok := m.table.Narrow(narrow)
	m.model.Narrow(narrow)
	if !ok || granted[0] != narrow {
		t.Fatalf("Narrow(%s) = %v, %t", e.ID, granted, ok)
	}
	m.checkGranted(t, before, granted)
	if granted, ok = m.table.Narrow(narrow); ok || granted != nil {
		t.Fatalf("Narrow(%s again) = %v, %t", e.ID, granted, ok)
	}
}

func (m *machine) RemoveUnknown(t *rapid.T) {
	if removed, held, granted := m.table.Remove("unknown"); removed != nil || held || granted != nil {
		t.Fatalf("Remove(unknown) = %v, %t, %v, want nothing", removed, held, granted)
	}
}

func (m *machine) checkGranted(t *rapid.T, before []lock.ID, granted []*lock.Entry) {
	want := slices.DeleteFunc(
		m.model.Holders(), func(id lock.ID) bool { return slices.Contains(before, id) },
	)
	if diff := diff.Diff(want, locktest.IDs(granted), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf(
			"granted differs from the holders after less those before (-want +got):\n%s%s", diff,
			locktest.Describe(m.table),
		)
	}
}

// Relist builds the table again from the entries that are there, as a replica does that has
// just listed. An operator may have raised the fence floor.
func (m *machine) Relist(t *rapid.T) {
	floor := rapid.SampledFrom([]uint64{0, 0, 1000}).Draw(t, "floor")
	raised := func(e *lock.Entry) *lock.Entry {
		again := *e
		again.Number += floor
		return &again
	}
	listed := lock.NewTable()
	for _, e := range m.model.Entries {
		if _, err := listed.Insert(raised(e)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := diff.Diff(
		m.model.Holders(), locktest.IDs(holding(listed)), cmpopts.EquateEmpty(),
	); diff != "" {
		t.Fatalf("holders (-model +listed):\n%s%s", diff, locktest.Describe(listed))
	}
}

// Check compares everything that can be asked of the table.
func (m *machine) Check(t *rapid.T) {
	m.checkQueues(t)
	m.checkEntries(t)
	m.checkCounts(t)
	m.checkConflicts(t)
	for id := range m.held {
		if _, holds := m.table.Entry(id); !holds {
			t.Fatalf("%s held, was not removed, and holds no more\n%s", id, locktest.Describe(m.table))
		}
	}
	for _, id := range m.model.Holders() {
		m.held[id] = true
	}
}

func (m *machine) checkQueues(t *rapid.T) {
	got := map[lock.Ref]bool{}
	for r, q := range m.table.Queues() {
		got[r] = true
		if q != m.table.Queue(r) {
			t.Fatalf("Queues and Queue(%v) disagree", r)
		}
		m.checkQueue(t, r, q)
	}
	if want := len(m.model.Newest); len(got) != want {
		t.Fatalf("%d queues, want %d", len(got), want)
	}
}

func (m *machine) checkQueue(t *rapid.T, r lock.Ref, q *lock.Queue) {
	want := m.model.Queue(r)
	if q.Len() != len(want) || q.Waiting() != len(want)-len(m.model.Front(r)) ||
		q.Newest() != m.model.Newest[r] {
		t.Fatalf("%v: Len %d, Waiting %d, Newest %d, want %d, %d, %d", r, q.Len(), q.Waiting(), q.Newest(),
			len(want), len(want)-len(m.model.Front(r)), m.model.Newest[r])
	}
	i, holders, newest := 0, 0, uint64(0)
	for e, holds := range q.Entries() {
		if holds {
			holders, newest = holders+1, e.Number
		}
		if i == len(want) || e != want[i] || holds != m.model.Holds(e) {
			t.Fatalf("%v: %s, holds %t, at %d, want %v in order", r, e.ID, holds, i, locktest.IDs(want))
		}
		i++
	}
	if i != len(want) || q.Holders() != holders || q.NewestHolder("") != newest {
		t.Fatalf("%v: Entries yielded %d of %d; Holders %d, want %d; NewestHolder %d, want %d", r, i, len(want),
			q.Holders(), holders, q.NewestHolder(""), newest)
	}
}

func (m *machine) checkEntries(t *rapid.T) {
	if n, held := m.table.Len(); n != len(m.model.Entries) || held != len(m.model.Holders()) {
		t.Fatalf("Len() = %d, %d, want %d, %d", n, held, len(m.model.Entries), len(m.model.Holders()))
	}
	got := maps.Collect(m.table.Entries())
	for _, e := range m.model.Entries {
		want := m.model.Holds(e)
		yielded, ok := got[e]
		same, holds := m.table.Entry(e.ID)
		if !ok || yielded != want || same != e || holds != want {
			t.Fatalf(
				"%s: yielded %t, holds %t and %t, want %t\n%s", e.ID, ok, yielded, holds, want,
				locktest.Describe(m.table),
			)
		}
		if p := m.table.Position(e.ID); p != m.wantPosition(e) {
			t.Fatalf(
				"Position(%s) = %d, want %d\n%s", e.ID, p, m.wantPosition(e), locktest.Describe(m.table),
			)
		}
	}
	if len(got) != len(m.model.Entries) {
		t.Fatalf("Entries yielded %d, want %d", len(got), len(m.model.Entries))
	}
}

// checkCounts counts the model's entries.
func (m *machine) checkCounts(t *rapid.T) {
	counts := map[lock.Mode]lock.Counts{}
	var longest *lock.Entry
	for _, e := range m.model.Entries { // in the order in which they came
		c := counts[e.Claims[0].Mode]
		if m.model.Holds(e) {
			c.Held++
		} else if c.Waiting++; longest == nil {
			longest = e
		}
		counts[e.Claims[0].Mode] = c
	}
	got := maps.Clone(m.table.Counts())
	maps.DeleteFunc(got, func(_ lock.Mode, c lock.Counts) bool { return c == lock.Counts{} })
	if diff := diff.Diff(counts, got); diff != "" {
		t.Fatalf("Counts (-want +got):\n%s%s", diff, locktest.Describe(m.table))
	}
	if e := m.table.Longest(); e != longest {
		t.Fatalf("Longest() = %v, want %v\n%s", e, longest, locktest.Describe(m.table))
	}
}

func (m *machine) wantPosition(e *lock.Entry) int {
	if m.model.Holds(e) {
		return 0
	}
	return m.model.Position(e)
}

// checkConflicts asks only the table, and the rules.
func (m *machine) checkConflicts(t *rapid.T) {
	for r, q := range m.table.Queues() {
		var holding []lock.Claim
		for e, holds := range q.Entries() {
			if holds {
				holding = append(holding, locktest.ClaimOn(e, r.Name))
			}
		}
		if got := q.Taken(); q.Head().Claim().Mode == lock.Semaphore {
			queue := lock.ClaimsOn(m.model.Queue(r), r.Name)
			queue = queue[:front(queue)]
			if want := permits(queue); got != want || got > queue[len(queue)-1].Limit {
				t.Fatalf("%v has taken %d permits of %v, want %d", r, got, queue, want)
			}
		}
		if front(holding) != len(holding) {
			t.Fatalf("%v is held by claims in conflict: %v", r, holding)
		}
	}
}

func permits(claims []lock.Claim) (n int) {
	for _, c := range claims {
		n += c.Permits
	}
	return n
}

// draw picks an entry that is there, or skips the action.
func (m *machine) draw(t *rapid.T) *lock.Entry {
	if len(m.model.Entries) == 0 {
		t.Skip("empty")
	}
	return rapid.SampledFrom(m.model.Entries).Draw(t, "known")
}

func tableMatchesModel(t *rapid.T) {
	m := newMachine()
	t.Repeat(map[string]func(*rapid.T){
		"":              m.Check,
		"Insert":        m.Insert,
		"InsertMore":    m.Insert, // queues should grow
		"InsertAgain":   m.InsertAgain,
		"InsertLate":    m.InsertLate,
		"Remove":        m.Remove,
		"Narrow":        m.Narrow,
		"NarrowMore":    m.Narrow,
		"RemoveUnknown": m.RemoveUnknown,
		"Relist":        m.Relist,
	})
}

func TestTableMatchesModel(t *testing.T) { rapid.Check(t, tableMatchesModel) }

func FuzzTable(f *testing.F) { f.Fuzz(rapid.MakeFuzz(tableMatchesModel)) }

// filled returns a table with up to 40 entries, in order.
func filled(t *rapid.T) (*lock.Table, []*lock.Entry) {
	table, serial := lock.NewTable(), 0
	all := rapid.SliceOfN(entries(&serial), 1, 40).Draw(t, "entries")
	for i, e := range all {
		e.Number = uint64(i + 1)
		if _, err := table.Insert(e); err != nil {
			t.Fatalf("Insert(%v): %v", e, err)
		}
	}
	return table, all
}

// No entry waits forever: an entry holds at the latest when all that came before
// it are gone, in whatever order they go and whatever comes after it.
func TestEntryHoldsOnceAllBeforeItAreGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, all := filled(t)
		i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
		told := i == 0
		if i > 0 {
			_, told = table.Entry(all[i].ID)
			for _, e := range rapid.Permutation(all[:i]).Draw(t, "order") {
				_, _, granted := table.Remove(e.ID)
				told = told || slices.Contains(granted, all[i])
			}
		}
		if _, holds := table.Entry(all[i].ID); !holds || !told {
			t.Fatalf(
				"%s has nobody before it: holds %t, its grant was told %t\n%s", all[i].ID, holds, told,
				locktest.Describe(table),
			)
		}
	})
}

// No circular wait: as long as anyone is there, someone holds, so that a table
// whose holders all leave empties itself, and everyone is granted exactly once.
func TestTableEmptiesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, all := filled(t)
		grants := holding(table)
		for next := grants; len(next) > 0; next = holding(table) {
			for _, e := range next {
				_, held, granted := table.Remove(e.ID)
				if !held {
					t.Fatalf("%s did not hold when it was removed", e.ID)
				}
				grants = append(grants, granted...)
			}
		}
		if n, held := table.Len(); n != 0 || held != 0 {
			t.Fatalf("%d entries wait and nobody holds\n%s", n, locktest.Describe(table))
		}
		if diff := diff.Diff(locktest.IDs(all), locktest.IDs(grants)); diff != "" {
			t.Fatalf("granted (-want +got):\n%s", diff)
		}
	})
}

func holding(table *lock.Table) []*lock.Entry {
	var all []*lock.Entry
	for e, holds := range table.Entries() {
		if holds {
			all = append(all, e)
		}
	}
	return all
}

// Fences grow: of two claims on a lock that do not tolerate each other, the one
// that is granted later has the greater number, whatever came and went between.
func TestFencesGrowFromGrantToConflictingGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, serial := lock.NewTable(), 0
		var there []*lock.Entry
		granted := map[lock.Ref][]*lock.Entry{}
		grant := func(e *lock.Entry) {
			for _, r := range locktest.Refs(e) {
				for _, before := range granted[r] {
					if conflict(locktest.ClaimOn(before, r.Name), locktest.ClaimOn(e, r.Name)) &&
						before.Number >= e.Number {
						t.Fatalf(
							"%v: %s is granted at %d after %s at %d\n%s", r, e.ID, e.Number, before.ID, before.Number,
							locktest.Describe(table),
						)
					}
				}
				granted[r] = append(granted[r], e)
			}
		}
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(there) > 0 && rapid.IntRange(0, 2).Draw(t, "goes") == 0 {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "who")
				_, _, next := table.Remove(there[i].ID)
				there = slices.Delete(there, i, i+1)
				for _, e := range next {
					grant(e)
				}
				continue
			}
			e := entries(&serial).Draw(t, "entry")
			e.Number = uint64(n + 1)
			holds, err := table.Insert(e)
			if err != nil {
				t.Fatal(err)
			}
			if there = append(there, e); holds {
				grant(e)
			}
		}
	})
}

// conflict says whether two claims can never be granted at one time.
func conflict(a, b lock.Claim) bool {
	return !tolerates(a, b) || a.Mode == lock.Semaphore && a.Permits+b.Permits > max(a.Limit, b.Limit)
}

// A follower of the feed from the start and a later list agree.
func TestTableIsAFunctionOfItsEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, all := filled(t)
		rest := slices.DeleteFunc(slices.Clone(all), func(e *lock.Entry) bool {
			gone := rapid.Bool().Draw(t, "gone")
			if gone {
				table.Remove(e.ID)
			}
			return gone
		})
		listed := lock.NewTable()
		for _, e := range rest {
			if _, err := listed.Insert(e); err != nil {
				t.Fatal(err)
			}
		}
		if diff := diff.Diff(
			locktest.IDs(holding(listed)), locktest.IDs(holding(table)), cmpopts.EquateEmpty(),
		); diff != "" {
			t.Fatalf("holders (-listed +followed):\n%s%s", diff, locktest.Describe(table))
		}
	})
}

func TestFrontIsTheLongestTolerantPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(claims()).Draw(t, "claims")
		if got, want := lock.Front(all), front(all); got != want {
			t.Fatalf("Front(%v) = %d, want %d", all, got, want)
		}
	})
}
