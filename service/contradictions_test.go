package service

import (
	"testing"

	"github.com/fencepost/fencepost/lock/order"
)

// TestRingsTakeTurns: contradictions of one tenant do not keep those of another from being
// told, however many there are.
func TestRingsTakeTurns(t *testing.T) {
	q := newContradictionQueue()
	oldest := &order.Contradiction{Tenant: "busy"}
	q.add(oldest)
	for range 2 * maxContradictionsToTell {
		q.add(&order.Contradiction{Tenant: "busy"})
	}
	first, second := &order.Contradiction{Tenant: "calm"}, &order.Contradiction{Tenant: "calm"}
	q.add(first)
	q.add(second)
	q.add(&order.Contradiction{Tenant: "busy"})
	<-q.ready
	var order []string
	for c := q.next(); c != nil; c = q.next() {
		order = append(order, c.Tenant)
		if len(order) == 1 && c != oldest {
			t.Error("the oldest has given way to a newer one of its tenant")
		}
		if len(order) == 2 && c != first {
			t.Error("the older one of a tenant is not told first")
		}
	}
	if len(order) != maxContradictionsToTell {
		t.Errorf("%d are told, want %d", len(order), maxContradictionsToTell)
	}
	if len(order) < 4 || order[1] != "calm" || order[3] != "calm" {
		t.Errorf("the tenants do not take turns: %v", order[:min(len(order), 6)])
	}
	if q.waiting.Len() != 0 || q.waiting.Of("busy") != 0 || q.waiting.Of("calm") != 0 {
		t.Errorf("something is left of an empty queue: %+v", q.waiting)
	}
}

// TestRingsOfManyTenants: where each has one, there is room for as many as there may be.
func TestRingsOfManyTenants(t *testing.T) {
	q := newContradictionQueue()
	for i := range 2 * maxContradictionsToTell {
		q.add(&order.Contradiction{Tenant: string(rune('a' + i))})
	}
	tenants := 0
	for i := range 2 * maxContradictionsToTell {
		tenants += q.waiting.Of(string(rune('a' + i)))
	}
	if q.waiting.Len() != maxContradictionsToTell || tenants != maxContradictionsToTell {
		t.Errorf("it has %d, and %d of all tenants, want %d each", q.waiting.Len(), tenants, maxContradictionsToTell)
	}
}

// TestRingsAreTold: whoever waits is told in the end, though others of as many tenants as there is
// room for come all the time.
func TestRingsAreTold(t *testing.T) {
	q := newContradictionQueue()
	add := func(tenant int) { q.add(&order.Contradiction{Tenant: string(rune('a' + tenant))}) }
	for i := range maxContradictionsToTell {
		add(i)
	}
	for i := range maxContradictionsToTell {
		if told := q.next().Tenant; told != string(rune('a'+i)) {
			t.Fatalf("%q is told, and tenant %d waits", told, i)
		}
		for j := range 10 {
			add(1000 + maxContradictionsToTell + 10*i + j)
		}
	}
}
