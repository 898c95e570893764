package store

import (
	"cmp"
	"slices"
)

// Turns has what waits of several tenants, who take turns: one that has much waits for itself. The zero
// value is empty. It is not safe for concurrent use.
type Turns[T any] struct {
	waiting map[string][]T // by tenant, the first first; none is empty
	turns   []string       // those tenants, the next first
	size    int
}

// Len is how many wait.
func (t *Turns[T]) Len() int { return t.size }

// Of is how many wait of a tenant.
func (t *Turns[T]) Of(tenant string) int { return len(t.waiting[tenant]) }

// Add puts something at the end of its tenant's.
func (t *Turns[T]) Add(tenant string, x T) {
	if t.waiting == nil {
		t.waiting = map[string][]T{}
	}
	if len(t.waiting[tenant]) == 0 {
		t.turns = append(t.turns, tenant)
	}
	t.waiting[tenant] = append(t.waiting[tenant], x)
	t.size++
}

// Next takes the first of the tenant whose turn it is. ok is false if nothing waits.
func (t *Turns[T]) Next() (x T, ok bool) {
	if len(t.turns) == 0 {
		return x, false
	}
	tenant := t.turns[0]
	all := t.waiting[tenant]
	x = all[0]
	clear(all[:1])
	if t.turns = t.turns[1:]; t.leave(tenant, all[1:]) {
		t.turns = append(t.turns, tenant)
	}
	return x, true
}

// Drop takes away the newest of the tenant that has most, if that has more than so many.
func (t *Turns[T]) Drop(moreThan int) bool {
	if len(t.turns) == 0 {
		return false
	}
	most := slices.MaxFunc(t.turns, func(a, b string) int { return cmp.Compare(len(t.waiting[a]), len(t.waiting[b])) })
	all := t.waiting[most]
	if len(all) <= moreThan {
		return false
	}
	last := len(all) - 1
	clear(all[last:])
	if !t.leave(most, all[:last]) {
		t.turns = slices.DeleteFunc(t.turns, func(other string) bool { return other == most })
	}
	return true
}

// leave leaves a tenant with one less, and reports whether something of it still waits.
func (t *Turns[T]) leave(tenant string, rest []T) bool {
	t.size--
	if len(rest) == 0 {
		delete(t.waiting, tenant)
		return false
	}
	t.waiting[tenant] = rest
	return true
}
