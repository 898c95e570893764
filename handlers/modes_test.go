package handlers_test

import (
	"encoding/json"
	"net/http"
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
			if got := a.inUse(); got != (setLock{Name: "orders:42", Mode: e.Mode, Limit: e.Limit}) {
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
