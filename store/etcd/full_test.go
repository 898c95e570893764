package etcd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// TestFullAtItsQuota is F13: one tenant fills an embedded store, and others go on. New entries
// are refused before etcd's alarm, which would stop renewals and releases too, and are
// taken again by themselves after some have gone. FAULTS=full does it at the default quota
// and takes some minutes.
func TestFullAtItsQuota(t *testing.T) {
	t.Parallel()
	quota, limit := int64(16<<20), time.Minute
	if os.Getenv("FAULTS") == "full" {
		quota, limit = DefaultQuota, 15*time.Minute // etcd walks through all of it to make room
	}
	s, m := testStore(t, EmbeddedConfig{Quota: quota}, func(*Conn) {})
	f := &fullStore{s: s}
	for i := range 20 {
		e := testEntry(fmt.Sprint("other-", i), fmt.Sprint("other-", i))
		e.Tenant, e.TTL = "others", time.Minute
		placed, _, err := s.Enqueue(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		f.others = append(f.others, placed)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { f.renew(t, stop) })
	began := time.Now()
	f.fill(t)
	f.full.Store(true)
	backend := m.server.Backend()
	t.Logf(
		"full after %v with %d entries: %d of %d bytes, %d in use", time.Since(began).Round(time.Second),
		len(f.big), backend.Size(), quota, backend.SizeInUse(),
	)
	if len(f.big) < 1000 {
		t.Errorf("only %d entries fit", len(f.big))
	}
	f.release(t)
	began = time.Now()
	within(
		t, limit, "there is room again",
		func() bool { return f.join(t, testEntry("again", "again")) == nil },
	)
	t.Logf("room again %v after the releases", time.Since(began).Round(time.Millisecond))
	close(stop)
	others.Wait()
	t.Logf("%d renewals of others; the longest took %v while it was filled and %v afterwards; "+
		"the longest release %v",
		f.renewals.Load(), time.Duration(f.longest[0].Load()), time.Duration(
			f.longest[1].Load(),
		), f.longestRelease)
	if alarms := m.server.Alarms(); len(alarms) > 0 {
		t.Errorf("etcd's alarm went off: %v", alarms)
	}
	s.ends.unrecordedReasons.Range(func(id, why any) bool {
		t.Errorf("the reason of %v (%v) is in memory only", id, why)
		return true
	})
}

type fullStore struct {
	s      *Store
	others []*lock.Entry

	full           atomic.Bool
	renewals       atomic.Int64
	longest        [2]atomic.Int64 // renewal, before and after it was full
	longestRelease time.Duration

	mu  sync.Mutex
	big []*lock.Entry
}

// renew renews the others' entries in turn; each must exist all the time.
func (f *fullStore) renew(t *testing.T, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		of := &f.longest[0]
		if f.full.Load() {
			of = &f.longest[1]
		}
		began := time.Now()
		if err := answered(
			func() error { return f.s.Renew(t.Context(), f.others[i%len(f.others)]) },
		); err != nil {
			t.Errorf("Renew beside a tenant that fills the store = %v", err)
			return
		}
		f.renewals.Add(1)
		of.Store(max(of.Load(), int64(time.Since(began))))
	}
}

// fill adds entries of the largest size until the store is full.
func (f *fullStore) fill(t *testing.T) {
	var all sync.WaitGroup
	for worker := range 256 {
		all.Go(func() {
			for i := 0; ; i++ {
				e := testEntry(fmt.Sprintf("lock-%d-%d", worker, i), fmt.Sprintf("big-%d-%d", worker, i))
				e.Metadata = map[string]string{"filler": strings.Repeat(`"`, lock.MaxMetadataSize-6)}
				if err := f.join(t, e); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// join writes an entry, under another id each time. The error says that the store is full.
func (f *fullStore) join(t *testing.T, e *lock.Entry) error {
	for attempt := 0; ; attempt++ {
		e := *e
		e.ID += lock.ID(fmt.Sprint("-", attempt))
		placed, _, err := f.s.Enqueue(t.Context(), &e)
		var why *lock.Error
		switch {
		case err == nil:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.big = append(f.big, placed)
			return nil
		case !errors.As(err, &why) || why.Code != lock.StoreUnavailable && why.Code != lock.Overloaded:
			t.Errorf("Enqueue = %v, want it out of space", err)
			return err
		case !strings.Contains(why.Detail, "out of space"):
			// slow, as a busy machine is
		case why.OutcomeUnknown || why.RetryAfter == 0:
			t.Errorf("Enqueue = %+v, want it certain and with a time to retry", why)
			return err
		default:
			return err
		}
	}
}

// release renews and removes entries of a full store, so many that there is room again.
func (f *fullStore) release(t *testing.T) {
	for _, e := range f.big[:min(len(f.big), 5000)] {
		if err := answered(func() error { return f.s.Renew(t.Context(), e) }); err != nil {
			t.Fatalf("Renew in a full store = %v", err)
		}
		began := time.Now()
		err := answered(func() error { return f.s.Remove(t.Context(), e, lock.Released) })
		if err != nil && !errors.Is(err, lock.Lost) {
			t.Fatalf("Remove in a full store = %v", err)
		}
		f.longestRelease = max(f.longestRelease, time.Since(began))
	}
}
