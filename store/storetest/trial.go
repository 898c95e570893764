package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// longTTL is a lease that does not end during a case.
const longTTL = 2 * time.Minute

// pollInterval is how often a case looks again.
const pollInterval = 10 * time.Millisecond

// trial is one run of one case.
type trial struct {
	*testing.T
	Harness
	Store
	ctx    context.Context // of all calls; bounded, so that a hanging store fails
	tenant string
}

func newTrial(t *testing.T, h Harness, c testCase) *trial {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	open, n := h.Open, c.needs
	switch {
	case n == backup && h.OpenAlone != nil:
		open = h.OpenAlone
	case c.inTime && h.OpenStrict != nil:
		open = h.OpenStrict
	case n == cut && h.OpenCut != nil:
		open, h.CallLimit = h.OpenCut, h.CutLimit
	}
	tr := &trial{T: t, Harness: h, Store: open(t), ctx: ctx, tenant: "acme"}
	if n == cut && tr.CutB == nil || n == compact && tr.Compact == nil ||
		n == floors && tr.OpenFloor == nil || n == backup && tr.Backup == nil {
		t.Fatal("the harness lacks what the case needs and does not say why")
	}
	if n != cut {
		tr.A, tr.B = persistent{tr.A}, persistent{tr.B}
		records := tr.Records
		tr.Records = func(s store.Store) store.RecordStore {
			if p, is := s.(persistent); is {
				s = p.Store
			}
			return records(s)
		}
	}
	return tr
}

// persistent repeats an Enqueue that has left nothing behind, as happens on a machine with much
// else to do. In these cases no client removes an entry before its call has learned of it.
type persistent struct{ store.Store }

func (p persistent) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	err = store.ErrNotWritten
	for errors.Is(err, store.ErrNotWritten) {
		placed, written, err = p.Store.Enqueue(ctx, e)
	}
	return placed, written, err
}

// draft returns a new exclusive entry of the trial's tenant on the locks named.
func (t *trial) draft(locks ...string) *lock.Entry { return draft(t.tenant, locks...) }

// repeatable is a draft whose id may be enqueued more than once.
func (t *trial) repeatable(locks ...string) *lock.Entry {
	e := t.draft(locks...)
	e.Request = "the same parameters"
	return e
}

func draft(tenant string, locks ...string) *lock.Entry {
	now := time.Now().UTC().Truncate(time.Millisecond)
	e := &lock.Entry{
		ID: lock.ID(rand.Text()), Tenant: tenant, Set: len(locks) > 1, Holder: "worker-1",
		TTL: longTTL, EnqueuedAt: now, WaitUntil: now.Add(time.Minute),
	}
	for _, name := range locks {
		e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	lock.Canonical(e.Claims)
	return e
}

func (t *trial) ref(name string) lock.Ref { return lock.Ref{Tenant: t.tenant, Name: name} }

// enqueue writes a copy of e, so that the case's own cannot be changed by it.
func (t *trial) enqueue(s store.Store, e *lock.Entry) *lock.Entry {
	t.Helper()
	placed, _, err := s.Enqueue(t.ctx, clone(e))
	if err != nil {
		t.Fatalf("Enqueue(%s on %v): %v", e.ID, e.Claims, err)
	}
	return placed
}

func (t *trial) remove(s store.Store, e *lock.Entry, why lock.Reason) {
	t.Helper()
	if err := s.Remove(t.ctx, e, why); err != nil {
		t.Fatalf("Remove(%s, %s): %v", e.ID, why, err)
	}
}

// queue reads a queue, again if a store that has much to do does not answer in time.
func (t *trial) queue(s store.Store, r lock.Ref) (entries []*lock.Entry) {
	t.Helper()
	t.eventually(time.Minute, "the queue is read", func() (done bool) {
		var err error
		if entries, _, err = s.Queue(t.ctx, r); err != nil && !errors.Is(err, lock.StoreUnavailable) {
			t.Fatalf("Queue(%v): %v", r, err)
		}
		return err == nil
	})
	return entries
}

// wantQueue compares a queue, as the client sees it now, with the entries.
func (t *trial) wantQueue(s store.Store, r lock.Ref, want ...*lock.Entry) {
	t.Helper()
	if diff := diff(want, t.queue(s, r)); diff != "" {
		t.Errorf("queue of %v (-want +got):\n%s", r, diff)
	}
}

// wantLost checks that a call says that the entry is gone, and only that.
func (t *trial) wantLost(doing string, err error) {
	t.Helper()
	typed := t.typed(doing, err)
	if typed == nil || typed.Code != lock.Lost || typed.Reason != "" {
		t.Errorf("%s = %v, want %s without a reason", doing, err, lock.Lost)
	}
}

// wantUnavailable checks that a call says that the store could not be asked, and
// returns whether it may have taken effect all the same.
func (t *trial) wantUnavailable(doing string, err error) (unknown bool) {
	t.Helper()
	typed := t.typed(doing, err)
	if typed == nil || !errors.Is(typed, lock.StoreUnavailable) {
		t.Errorf("%s = %v, want %s", doing, err, lock.StoreUnavailable)
		return false
	}
	return typed.OutcomeUnknown
}

// typed checks that an error is of the type that crosses packages.
func (t *trial) typed(doing string, err error) *lock.Error {
	t.Helper()
	var typed *lock.Error
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("%s = %T, want *lock.Error", doing, err)
	}
	return typed
}

// eventually polls until done or for at most the time given.
func (t *trial) eventually(within time.Duration, what string, done func() bool) {
	t.Helper()
	if !poll(within, done) {
		t.Fatalf("not within %v: %s", within, what)
	}
}

func poll(within time.Duration, done func() bool) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	end := time.Now().Add(within)
	for !done() {
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
	return true
}

// until repeats step every interval up to the instant: it keeps something going.
func until(end time.Time, interval time.Duration, step func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for time.Now().Before(end) {
		step()
		<-tick.C
	}
}

// together runs work n times at once and waits for all.
func together(n int, work func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			work(i)
		})
	}
	close(start)
	all.Wait()
}

// client returns A for even numbers and B for odd ones.
func (t *trial) client(i int) store.Store {
	if i%2 == 0 {
		return t.A
	}
	return t.B
}

func clone(e *lock.Entry) *lock.Entry {
	c := *e
	return &c
}

// diff compares entries or lists of them; an empty map or list is as good as none. What
// is alike in memory, as most is, needs no closer look, which takes many times longer.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}
