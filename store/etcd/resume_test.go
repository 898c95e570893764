package etcd_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// told is a watcher that keeps everything reported about entries.
type told struct {
	mu   sync.Mutex
	text []string
	upTo uint64
}

func (f *told) Reset(s store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, fmt.Sprint("reset at ", s.Number))
	for _, e := range s.Entries {
		f.text = append(f.text, fmt.Sprint("is ", e.Number))
	}
	f.upTo = s.Number
}

func (f *told) Apply(upTo uint64, changes []store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		if c.Joined != nil {
			f.text = append(f.text, fmt.Sprint("joined ", c.Joined.Number))
		} else {
			f.text = append(f.text, fmt.Sprint("left at ", c.Number, " ", c.Reason))
		}
	}
	f.upTo = upTo
}

func (f *told) Recall([]store.Ended, bool) {}
func (f *told) Lost(error)                 {}

func (f *told) reached(number uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upTo >= number
}

// follow has a new store begin its feed at a number, and returns what it told up to another.
func follow(t *testing.T, conn *etcd.Conn, from, upTo uint64) []string {
	t.Helper()
	s := openStore(t, conn, etcd.Config{})
	s.Resume(from)
	ctx, cancel := context.WithCancel(t.Context())
	f := &told{}
	var following sync.WaitGroup
	following.Go(func() { s.Watch(ctx, f) })
	if !within(30*time.Second, func() bool { return f.reached(upTo) }) {
		t.Error("the feed has not told everything")
	}
	cancel()
	following.Wait()
	return f.text
}

// TestResume: a feed can begin where another ended, however long ago, as long as the store
// knows what has happened since; then it begins now.
func TestResume(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	conn := connect(t, cluster.Endpoints())
	s := openStore(t, conn, etcd.Config{})
	join := func() *lock.Entry {
		now := time.Now()
		e, _, err := s.Enqueue(t.Context(), &lock.Entry{
			ID: lock.ID(rand.Text()), Tenant: "acme", Holder: "worker-1", TTL: time.Minute, EnqueuedAt: now,
			WaitUntil: now.Add(time.Minute), Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first, second := join(), join()
	if err := s.Remove(t.Context(), first, lock.Released); err != nil {
		t.Fatal(err)
	}
	third := join()
	newest, err := s.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := follow(t, conn, second.Number, newest)
	want := []string{
		fmt.Sprint("reset at ", second.Number), fmt.Sprint("is ", first.Number),
		fmt.Sprint("is ", second.Number),
		fmt.Sprint("left at ", second.Number+1, " released"), fmt.Sprint("joined ", third.Number),
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	present := []string{fmt.Sprint("is ", second.Number), fmt.Sprint("is ", third.Number)}
	for _, from := range []uint64{0, newest + 100} {
		if got := follow(t, conn, from, newest); !slices.Equal(got[1:], present) {
			t.Errorf("from %d: told %q, want what there is now", from, got)
		}
	}
	compact(t, cluster)
	if got := follow(t, conn, second.Number, newest); !slices.Equal(got[1:], present) {
		t.Errorf("of what is compacted: told %q, want what there is now", got)
	}
}
