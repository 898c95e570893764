// Package locktest has what the tests of package lock and its subpackages share: tables by brute
// force, and entries.
package locktest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// Model is the table by brute force: a list of entries. It computes everything else from the
// rules on each call.
type Model struct {
	Entries []*lock.Entry
	Newest  map[lock.Ref]uint64 // of the queues that are not empty
}

// NewModel returns a table without entries.
func NewModel() *Model { return &Model{Newest: map[lock.Ref]uint64{}} }

// Find returns the entry with the id, or nil.
func (m *Model) Find(id lock.ID) *lock.Entry {
	i := slices.IndexFunc(m.Entries, func(e *lock.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return m.Entries[i]
}

// Accepts reports whether every queue of e is still below e's number.
func (m *Model) Accepts(e *lock.Entry) bool {
	return !slices.ContainsFunc(Refs(e), func(r lock.Ref) bool {
		n, used := m.Newest[r]
		return used && n >= e.Number
	})
}

// Insert adds an entry, whose number every queue of it accepts.
func (m *Model) Insert(e *lock.Entry) {
	m.Entries = append(m.Entries, e)
	for _, r := range Refs(e) {
		m.Newest[r] = e.Number
	}
}

// Remove removes an existing entry.
func (m *Model) Remove(id lock.ID) {
	e := m.Find(id)
	m.Entries = slices.DeleteFunc(m.Entries, func(other *lock.Entry) bool { return other == e })
	for _, r := range Refs(e) {
		if len(m.Queue(r)) == 0 {
			delete(m.Newest, r)
		}
	}
}

// Narrow replaces a choosing entry by e, which left queues.
func (m *Model) Narrow(e *lock.Entry) {
	before := m.Find(e.ID)
	m.Entries[slices.Index(m.Entries, before)] = e
	for _, r := range Refs(before) {
		if len(m.Queue(r)) == 0 {
			delete(m.Newest, r)
		}
	}
}

// Queue returns the entries with a claim on r, in the order of their numbers.
func (m *Model) Queue(r lock.Ref) []*lock.Entry {
	var queue []*lock.Entry
	for _, e := range m.Entries {
		if slices.Contains(Refs(e), r) {
			queue = append(queue, e)
		}
	}
	slices.SortFunc(queue, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return queue
}

// Front returns the entries of r's queue that [lock.Front] lets through.
func (m *Model) Front(r lock.Ref) []*lock.Entry {
	queue := m.Queue(r)
	var claims []lock.Claim
	for _, e := range queue {
		claims = append(claims, ClaimOn(e, r.Name))
	}
	return queue[:lock.Front(claims)]
}

// Holds reports whether an entry is in the front of all its queues, and not choosing.
func (m *Model) Holds(e *lock.Entry) bool {
	return !e.Choosing() && !slices.ContainsFunc(
		Refs(e), func(r lock.Ref) bool { return !slices.Contains(m.Front(r), e) },
	)
}

// Choice returns what a choosing entry may keep, nil if it has to wait.
func (m *Model) Choice(e *lock.Entry) []lock.Claim {
	if !e.Choosing() {
		return nil
	}
	kept, ok := e.Choice(func(c lock.Claim) bool {
		return slices.Contains(m.Front(lock.Ref{Tenant: e.Tenant, Name: c.Name}), e)
	})
	if !ok {
		return nil
	}
	return kept
}

// Holders returns the ids of the entries that hold, in byte order.
func (m *Model) Holders() []lock.ID {
	var ids []lock.ID
	for _, e := range m.Entries {
		if m.Holds(e) {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Position counts, in each queue where e waits, the waiters up to and including
// e, and returns the longest of these lines, of a choosing entry among the Any shortest.
func (m *Model) Position(e *lock.Entry) int {
	var lines []int
	for _, r := range Refs(e) {
		behind := m.Queue(r)[len(m.Front(r)):]
		lines = append(lines, 1+slices.Index(behind, e))
	}
	if slices.Sort(lines); e.Choosing() {
		return max(1, lines[e.Any-1])
	}
	return lines[len(lines)-1]
}

// Refs returns the locks of an entry.
func Refs(e *lock.Entry) []lock.Ref {
	var all []lock.Ref
	for _, c := range e.Claims {
		all = append(all, lock.Ref{Tenant: e.Tenant, Name: c.Name})
	}
	return all
}

// ClaimOn returns the claim of an entry on a lock that it has one on.
func ClaimOn(e *lock.Entry, name string) lock.Claim {
	i := slices.IndexFunc(e.Claims, func(c lock.Claim) bool { return c.Name == name })
	return e.Claims[i]
}

// Describe prints a table's queues for a failure message.
func Describe(t interface {
	Queues() iter.Seq2[lock.Ref, *lock.Queue]
},
) string {
	text := ""
	for r, q := range t.Queues() {
		text += fmt.Sprintf("%s/%s:", r.Tenant, r.Name)
		for e, holds := range q.Entries() {
			text += fmt.Sprintf(" %s#%d(%v,holds=%t)", e.ID, e.Number, ClaimOn(e, r.Name), holds)
		}
		text += "\n"
	}
	return text
}

// Entry makes an exclusive entry of tenant t on the locks named.
func Entry(id lock.ID, number uint64, locks ...string) *lock.Entry {
	e := &lock.Entry{ID: id, Tenant: "t", Number: number, Set: len(locks) > 1}
	for _, name := range locks {
		e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	return e
}

// Pool makes an exclusive entry of tenant t that wants some of the locks named.
func Pool(id lock.ID, number uint64, some int, locks ...string) *lock.Entry {
	e := Entry(id, number, locks...)
	e.Set, e.Any = true, some
	for i := range locks {
		e.Order = append(e.Order, i)
	}
	return e
}

// IDs returns the ids of entries, in byte order.
func IDs(entries []*lock.Entry) []lock.ID {
	var all []lock.ID
	for _, e := range entries {
		all = append(all, e.ID)
	}
	slices.Sort(all)
	return all
}
