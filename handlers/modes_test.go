package handlers_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

const (
	readers = `{"mode":"shared","wait_seconds":60}`
	writer  = `{"wait_seconds":60}`
	three   = `{"mode":"semaphore","limit":3,"wait_seconds":60}`
)

func modeMismatch(name, as string) problem {
	return problem{code: "mode_mismatch", detail: "the lock " + name + " is in use " + as}
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

// TestReadersTogether: readers hold together, a writer waits for all of them, and
// a reader that comes after the writer waits behind it.
func TestReadersTogether(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first, second := c.acquire("orders:42", body(readers)), c.acquire("orders:42", body(readers))
	if *second.Fence <= *first.Fence {
		t.Errorf("fence %d after %d", *second.Fence, *first.Fence)
	}
	w := c.join("orders:42", body(writer))
	late := c.join("orders:42", body(readers))
	c.release(first)
	if v := c.look("orders:42"); len(v.Holders) != 1 || *v.Waiting != 2 || v.Waiters[0].Mode != "exclusive" || v.Waiters[1].Mode != "shared" {
		t.Errorf("with one reader left: %+v", v)
	}
	c.release(second)
	written := w.wait().held(http.StatusCreated)
	if late.answered() {
		t.Fatal("a reader holds beside a writer")
	}
	c.release(written)
	if last := late.wait().held(http.StatusCreated); *last.Fence <= *written.Fence || *written.Fence <= *second.Fence {
		t.Errorf("fences %d, %d, %d do not grow", *second.Fence, *written.Fence, *last.Fence)
	}
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	held := []entry{c.acquire("pool", body(three)), c.acquire("pool", body(three)), c.acquire("pool", body(three))}
	if r := c.post("/locks/pool", body(`{"mode":"semaphore","limit":3}`)).refused("lock_held"); len(r.Holders) != 3 || r.Holders[0].Limit != 3 {
		t.Errorf("refused because of %+v", r)
	}
	next := c.join("pool", body(three))
	c.release(held[1])
	if e := next.wait().held(http.StatusCreated); e.Mode != "semaphore" || e.Limit != 3 {
		t.Errorf("%+v, want a semaphore of 3", e)
	}
}

// TestModeMismatch: while a lock is in use its entries agree, and a refusal
// leaves nothing behind.
func TestModeMismatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, then string
		agree       bool
		as          string
	}{
		"ExclusiveSemaphore": {`{}`, `{"mode":"semaphore","limit":2}`, false, "in the mode exclusive"},
		"SharedSemaphore":    {`{"mode":"shared"}`, `{"mode":"semaphore","limit":2,"wait_seconds":5}`, false, "in the mode shared"},
		"SemaphoreExclusive": {`{"mode":"semaphore","limit":2}`, `{"wait_seconds":5}`, false, "as a semaphore with the limit 2"},
		"SemaphoreShared":    {`{"mode":"semaphore","limit":2}`, `{"mode":"shared"}`, false, "as a semaphore with the limit 2"},
		"OtherLimit":         {`{"mode":"semaphore","limit":2}`, `{"mode":"semaphore","limit":3}`, false, "as a semaphore with the limit 2"},
		"SameLimit":          {`{"mode":"semaphore","limit":2}`, `{"mode":"semaphore","limit":2}`, true, ""},
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
