package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

func modeMismatch(name, as string) problem {
	return problem{code: "mode_mismatch", detail: "the lock " + name + " is in use " + as +
		"; use that, or wait until it is free"}
}

// inUse is what a refusal says of the lock.
func (a *answer) inUse() setLock {
	a.t.Helper()
	var p struct {
		InUse setLock `json:"in_use"`
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Fatal(err)
	}
	return p.InUse
}

// TestModeMismatch: while a lock is in use its entries agree on semaphore or not, and a refusal
// leaves nothing behind.
func TestModeMismatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, then string
		agree       bool
		as          string
	}{
		"ExclusiveSemaphore": {`{}`, `{"mode":"semaphore","limit":2}`, false, "in the mode exclusive"},
		"SharedSemaphore": {
			`{"mode":"shared"}`, `{"mode":"semaphore","limit":2,"wait_seconds":5}`, false,
			"in the mode shared",
		},
		"SemaphoreExclusive": {
			`{"mode":"semaphore","limit":2}`, `{"wait_seconds":5}`, false, "in the mode semaphore",
		},
		"SemaphoreShared": {
			`{"mode":"semaphore","limit":2}`, `{"mode":"shared"}`, false, "in the mode semaphore",
		},
		"OtherLimit": {`{"mode":"semaphore","limit":2}`, `{"mode":"semaphore","limit":3}`, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			e := c.acquire("orders:42", body(tc.first))
			a := c.post("/locks/orders:42", body(tc.then), key("k"))
			if tc.agree {
				a.held(http.StatusCreated)
				return
			}
			a.wantProblem(modeMismatch("orders:42", tc.as), "in_use")
			want := setLock{Name: "orders:42", Mode: e.Mode, Limit: e.Limit, Permits: e.Permits}
			if got := a.inUse(); got != want {
				t.Errorf("%v: in use as %+v", a, got)
			}
			if v := c.look("orders:42"); *v.Waiting != 0 {
				t.Errorf("%d wait after a refusal", *v.Waiting)
			}
			c.release(e)
			c.acquire("orders:42", body(tc.then), key("k")) // now it is free, and the key is not used up
		})
	}
}

// TestPermits: each entry takes its permits and is judged by its own limit, and none passes a wide
// request. The lock shows what is held, and by which limits.
func TestPermits(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	join := func(limit, permits int) *answer {
		return c.post("/locks/pool", body(fmt.Sprintf(
			`{"mode":"semaphore","limit":%d,"permits":%d,"async":true,"wait_seconds":60,"ttl_seconds":60}`,
			limit, permits,
		)))
	}
	first := join(5, 3).held(http.StatusCreated)
	if first.Permits != 3 || first.Limit != 5 {
		t.Errorf("it takes %d of %d permits, want 3 of 5", first.Permits, first.Limit)
	}
	if v := c.look("pool"); v.Permits != 3 || !slices.Equal(v.Limits, []int{5}) || v.Differ != nil {
		t.Errorf("%d permits are held of %v, differing since %v", v.Permits, v.Limits, v.Differ)
	}
	second := join(8, 1).held(http.StatusCreated)
	for _, limit := range []int{8, 5} {
		join(limit, 5).waiting(http.StatusAccepted)
	}
	join(8, 1).waiting(http.StatusAccepted)
	v := c.look("pool")
	if v.Permits != 4 || !slices.Equal(v.Limits, []int{5, 8}) || v.Differ == nil ||
		*v.Differ != second.EnqueuedAt {
		t.Errorf("%d permits are held of %v, differing since %v", v.Permits, v.Limits, v.Differ)
	}
	for i, want := range []int{4, 9, 14} {
		if w := v.Waiters[i]; w.PermitsBefore != want || w.Position != i+1 {
			t.Errorf("waiter %d: %+v, want %d permits before it", i, w, want)
		}
	}
	c.release(first)
	if v := c.look("pool"); v.Permits != 6 || len(v.Holders) != 2 || len(v.Waiters) != 2 {
		t.Errorf("%d permits are held by %d, and %d wait", v.Permits, len(v.Holders), len(v.Waiters))
	}
	alone := c.acquire("alone")
	if v := c.look("alone"); v.Permits != 0 || v.Limits != nil || alone.Permits != 0 {
		t.Errorf("an exclusive lock has %d permits of %v", v.Permits, v.Limits)
	}
}
