package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
)

// sizes notes how large the transactions are that put entries. They are held back while
// there is a gate.
type sizes struct {
	mu      sync.Mutex
	gate    chan struct{}
	largest int // bytes of the keys and values of a transaction
	with    int // entries in it
	value   int // the largest in any
	full    int // transactions that are nearly as large as they may be
}

func (z *sizes) note(
	ctx context.Context, r *pb.TxnRequest, do func() (*pb.TxnResponse, error),
) (*pb.TxnResponse, error) {
	entries, size, value := 0, 0, 0
	for _, put := range PutsIn(r) {
		entries, size, value = entries+1, size+len(put.Key)+len(put.Value), max(value, len(put.Value))
	}
	if entries == 0 {
		return do()
	}
	z.mu.Lock()
	gate := z.gate
	z.value = max(z.value, value)
	if size > z.largest {
		z.largest, z.with = size, entries
	}
	if size > batchBytes*3/4 {
		z.full++
	}
	z.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done(): // the batch is sent again
	}
	return do()
}

// hold holds back what puts entries until the gate is opened.
func (z *sizes) hold() (open func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	gate := make(chan struct{})
	z.gate = gate
	return func() { close(gate) }
}

func (z *sizes) fullOnes() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.full
}

// TestLargeValues has one tenant write the largest entries that there are, many at once,
// beside another one. What they share is bounded in bytes, nothing grows by being
// escaped, and so the other's entries are written.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	var seen sizes
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		seen.hold()() // nothing is, to begin with
		c.Interfere(seen.note)
	})
	// A slow machine may need more rounds. The next finds leases in the pool. Without the bound in
	// bytes the one in operations leaves a little more than fits, so not every round would show it.
	end := time.Now().Add(time.Minute)
	for round := 0; (round < 4 || seen.fullOnes() < 2) && time.Now().Before(end) &&
		!t.Failed(); round++ {
		largeAtOnce(t, s, &seen, round)
	}
	t.Logf("%d transactions were nearly full; the largest has %d bytes with %d entries, "+
		"the largest value %d",
		seen.full, seen.largest, seen.with, seen.value)
	if seen.full < 2 || seen.largest > batchBytes {
		t.Errorf(
			"the largest transaction has %d bytes, want most of %d and no more", seen.largest, batchBytes,
		)
	}
	if seen.value > 2*(lock.MaxMetadataSize+lock.MaxHolderLength)+1<<10 {
		t.Errorf("a value has %d bytes", seen.value)
	}
}

// largeAtOnce has so many writes gather that they fill a few transactions.
func largeAtOnce(t *testing.T, s *Store, seen *sizes, round int) {
	const atOnce = 280
	open := seen.hold()
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() { passes(t, s, largestEntry(worker, round)) })
	}
	for end := time.Now().Add(
		attemptTimeout,
	); s.commits.Pending().Writes < atOnce*3/4 && time.Now().Before(end); {
		<-time.After(5 * time.Millisecond)
	}
	open()
	all.Wait()
}

// largestEntry has quotes, which take two bytes, or what is six bytes where JSON is made
// for HTML. One of twenty is a small one of another tenant.
func largestEntry(worker, round int) *lock.Entry {
	id := fmt.Sprintf("%d-%d", round, worker)
	if worker%20 == 0 {
		return testEntry("small-"+id, id)
	}
	text := `"`
	if worker%10 == 9 {
		text = "<"
	}
	e := testEntry("large-"+id+strings.Repeat("n", 180), id)
	e.Tenant, e.Holder = "noisy", strings.Repeat(text, lock.MaxHolderLength)
	e.Metadata = map[string]string{"filler": strings.Repeat(text, lock.MaxMetadataSize-6)}
	return e
}

// passes writes an entry and removes it. The store may be slow on a busy machine, or
// refuse in time; it must not find it too large.
func passes(t *testing.T, s *Store, e *lock.Entry) {
	placed, _, err := s.Enqueue(t.Context(), e)
	if err == nil {
		err = s.Remove(t.Context(), placed, lock.Released)
	}
	var why *lock.Error
	slow := errors.As(err, &why) && (why.Code == lock.StoreUnavailable || why.Code == lock.Overloaded)
	if err != nil && (!slow || strings.Contains(why.Detail, "too large")) {
		t.Errorf("%s: %v", e.ID, err)
	}
}
