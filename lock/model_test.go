package lock_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
)

// model is the table by brute force: a list of entries. Everything else is
// worked out anew, from the rules, whenever it is asked for.
type model struct {
	entries []*lock.Entry
	newest  map[lock.Ref]uint64 // of the queues that are not empty
}

func newModel() *model { return &model{newest: map[lock.Ref]uint64{}} }

func (m *model) find(id lock.ID) *lock.Entry {
	i := slices.IndexFunc(m.entries, func(e *lock.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return m.entries[i]
}

// accepts says whether every queue of e is still below e's number.
func (m *model) accepts(e *lock.Entry) bool {
	return !slices.ContainsFunc(refs(e), func(r lock.Ref) bool {
		n, used := m.newest[r]
		return used && n >= e.Number
	})
}

func (m *model) insert(e *lock.Entry) {
	m.entries = append(m.entries, e)
	for _, r := range refs(e) {
		m.newest[r] = e.Number
	}
}

func (m *model) remove(id lock.ID) {
	e := m.find(id)
	m.entries = slices.DeleteFunc(m.entries, func(other *lock.Entry) bool { return other == e })
	for _, r := range refs(e) {
		if len(m.queue(r)) == 0 {
			delete(m.newest, r)
		}
	}
}

// queue returns the entries with a claim on r, in the order of their numbers.
func (m *model) queue(r lock.Ref) []*lock.Entry {
	var queue []*lock.Entry
	for _, e := range m.entries {
		if slices.Contains(refs(e), r) {
			queue = append(queue, e)
		}
	}
	slices.SortFunc(queue, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return queue
}

// front returns the entries of r's queue that [lock.Front] lets through.
func (m *model) front(r lock.Ref) []*lock.Entry {
	queue := m.queue(r)
	var claims []lock.Claim
	for _, e := range queue {
		claims = append(claims, claimOn(e, r.Name))
	}
	return queue[:lock.Front(claims)]
}

func (m *model) holds(e *lock.Entry) bool {
	return !slices.ContainsFunc(refs(e), func(r lock.Ref) bool { return !slices.Contains(m.front(r), e) })
}

func (m *model) holders() []lock.ID {
	var ids []lock.ID
	for _, e := range m.entries {
		if m.holds(e) {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// position counts, in each queue where e waits, the waiters up to and including
// e, and returns the longest of these lines.
func (m *model) position(e *lock.Entry) int {
	longest := 0
	for _, r := range refs(e) {
		behind := m.queue(r)[len(m.front(r)):]
		longest = max(longest, 1+slices.Index(behind, e))
	}
	return longest
}

// front is what [lock.Front] means, from first principles: the longest prefix in
// which every claim tolerates each claim before it and is below its own limit.
func front(claims []lock.Claim) int {
	for i, c := range claims {
		if c.Mode == lock.Semaphore && i > 0 && i >= c.Limit {
			return i
		}
		for _, before := range claims[:i] {
			if !tolerates(before, c) {
				return i
			}
		}
	}
	return len(claims)
}

func tolerates(a, b lock.Claim) bool {
	if a.Mode != b.Mode {
		return false
	}
	return a.Mode == lock.Shared || a.Mode == lock.Semaphore && a.Limit == b.Limit
}

func refs(e *lock.Entry) []lock.Ref {
	var all []lock.Ref
	for _, c := range e.Claims {
		all = append(all, lock.Ref{Tenant: e.Tenant, Name: c.Name})
	}
	return all
}

func claimOn(e *lock.Entry, name string) lock.Claim {
	i := slices.IndexFunc(e.Claims, func(c lock.Claim) bool { return c.Name == name })
	return e.Claims[i]
}

// names of the locks that generated entries ask for.
func names() []string { return []string{"a", "b", "c", "d", "e", "f", "g", "h"} }

func claims() *rapid.Generator[lock.Claim] {
	return rapid.Custom(func(t *rapid.T) lock.Claim {
		switch rapid.IntRange(0, 5).Draw(t, "mode") {
		case 0, 1:
			return lock.Claim{Mode: lock.Shared}
		case 2, 3:
			return lock.Claim{Mode: lock.Semaphore, Limit: rapid.SampledFrom([]int{2, 2, 2, 1, 3}).Draw(t, "limit")}
		default:
			return lock.Claim{Mode: lock.Exclusive}
		}
	})
}

// entries generates entries without a number: of one lock mostly, of up to six
// of the eight otherwise.
func entries(serial *int) *rapid.Generator[*lock.Entry] {
	return rapid.Custom(func(t *rapid.T) *lock.Entry {
		*serial++
		e := &lock.Entry{ID: lock.ID("e" + strconv.Itoa(*serial)), Tenant: rapid.SampledFrom([]string{"t", "t", "t", "u"}).Draw(t, "tenant")}
		size := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 6}).Draw(t, "size")
		for _, name := range rapid.Permutation(names()).Draw(t, "names")[:size] {
			c := claims().Draw(t, "claim")
			c.Name = name
			e.Claims = append(e.Claims, c)
		}
		e.Set = size > 1
		lock.Canonical(e.Claims)
		return e
	})
}

// describe prints a table's queues for a failure message.
func describe(t *lock.Table) string {
	text := ""
	for r, q := range t.Queues() {
		text += fmt.Sprintf("%s/%s:", r.Tenant, r.Name)
		for e, holds := range q.Entries() {
			text += fmt.Sprintf(" %s#%d(%v,holds=%t)", e.ID, e.Number, claimOn(e, r.Name), holds)
		}
		text += "\n"
	}
	return text
}
