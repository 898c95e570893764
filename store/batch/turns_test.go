package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/store/batch"
)

func one(tenant string, payload, ops int) *write {
	return &write{Tenant: tenant, Ops: ops, Bytes: 1, Payload: payload}
}

// oneAtATime has one batch in flight, so that the order of batches is that in which they are taken.
func oneAtATime(ops int) batch.Limits {
	return batch.Limits{Ops: ops, Bytes: 1 << 20, InFlight: 1, Most: 1}
}

// TestBacklogOfATenantDelaysNoOther: a write is in the next batch, whatever another tenant has
// pending, also if that tenant writes sets.
func TestBacklogOfATenantDelaysNoOther(t *testing.T) {
	for _, ops := range []int{1, 6} {
		t.Run(fmt.Sprint("of ", ops), func(t *testing.T) {
			withCommitter(t, oneAtATime(16), func(t *testing.T, c *committer, f *fakeStore) {
				var backlog []*write
				for i := range 100 {
					backlog = append(backlog, one("many", i, ops))
				}
				all := handIn(t, c, backlog...)
				for i := range 3 {
					next := len(f.payloads())
					handIn(t, c, one("few", 1000+i, 1)).Wait()
					if sent := f.payloads(); !slices.Contains(sent[next], 1000+i) {
						t.Errorf("batches %v, want write %d in that after the first %d", sent, 1000+i, next)
					}
				}
				all.Wait()
			})
		})
	}
}

// TestTurnsCountOperations: tenants that always have writes pending get the same number of
// operations, however large the writes of each are. What a tenant did not use is not saved up.
func TestTurnsCountOperations(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		ops := 16 + r.IntN(100)
		most := 1 + r.IntN(12)
		withCommitter(t, oneAtATime(ops), func(t *testing.T, c *committer, f *fakeStore) {
			tenants := []string{"a", "b", "c", "d"}
			var writes []*write
			for i := range 400 {
				of := tenants[i%len(tenants)]
				size := 1
				if of != "a" {
					size = 1 + r.IntN(most)
				}
				writes = append(writes, one(of, i, size))
			}
			handIn(t, c, writes...).Wait()
			f.sharesEvenly(writes, tenants, ops, most)
		})
	}
}

// sharesEvenly checks the batches until a tenant has nothing pending any more.
func (f *fakeStore) sharesEvenly(writes []*write, tenants []string, ops, most int) {
	left, served := map[string]int{}, map[string]int{}
	for _, w := range writes {
		left[w.Tenant]++
	}
	for i, sent := range f.batches {
		for _, w := range sent {
			left[w.Tenant]--
			if i > 0 { // the first write goes alone
				served[w.Tenant] += w.Ops
			}
		}
		least, greatest := 1<<30, 0
		for _, of := range tenants {
			if left[of] == 0 {
				return
			}
			least, greatest = min(least, served[of]), max(greatest, served[of])
		}
		if greatest-least > ops/8+2*most {
			f.t.Fatalf("after %d batches: %v operations of each, with %d in a batch", i+1, served, ops)
		}
	}
}

// TestTurnOfWithdrawnWritesPasses: a tenant whose pending writes are withdrawn leaves no gap, and
// its writes are not sent.
func TestTurnOfWithdrawnWritesPasses(t *testing.T) {
	withCommitter(t, oneAtATime(16), func(t *testing.T, c *committer, f *fakeStore) {
		all := handIn(t, c, one("first", 0, 1)) // in flight
		ctx, cancel := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		for i := range 40 {
			gone.Go(func() {
				if _, err := c.Do(ctx, one("gone", 100+i, 1)); !errors.Is(err, batch.ErrNotSent) {
					t.Errorf("a write that was withdrawn: %v", err)
				}
			})
		}
		synctest.Wait()
		others := handIn(t, c, one("b", 1, 1), one("c", 2, 1), one("b", 3, 1))
		cancel()
		gone.Wait()
		all.Wait()
		others.Wait()
		if got, want := fmt.Sprint(f.payloads()), "[[0] [1 3 2]]"; got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
	})
}

// TestGoneClientsWriteIsNotSent: the write of a client that is gone is withdrawn while it is
// pending. Once it is sent, Do returns its outcome.
func TestGoneClientsWriteIsNotSent(t *testing.T) {
	withCommitter(t, oneAtATime(16), func(t *testing.T, c *committer, f *fakeStore) {
		gone := make(chan struct{})
		sent, pending := one("a", 1, 1), one("a", 2, 1)
		sent.Gone, pending.Gone = gone, gone
		all := handIn(t, c, sent)
		var ended sync.WaitGroup
		ended.Go(func() {
			if _, err := c.Do(t.Context(), pending); !errors.Is(err, batch.ErrNotSent) {
				t.Errorf("a pending write without a client: %v", err)
			}
		})
		synctest.Wait()
		close(gone)
		ended.Wait()
		all.Wait()
		if got, want := fmt.Sprint(f.payloads()), "[[1]]"; got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
	})
}
