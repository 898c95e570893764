package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

type (
	write     = batch.Write[int, int]
	committer = batch.Committer[int, int]
)

// fakeStore executes batches after a while, and remembers what it was sent.
type fakeStore struct {
	t      *testing.T
	took   time.Duration
	tamper func(writes []*write) (again [][]*write) // nil: every write is executed

	mu       sync.Mutex
	batches  [][]*write
	running  int
	most     int
	ops      int // of the batches that run
	mostOps  int
	executed map[*write]int
}

func (f *fakeStore) send(writes []*write) [][]*write {
	f.mu.Lock()
	f.batches = append(f.batches, slices.Clone(writes))
	f.running++
	f.most = max(f.most, f.running)
	ops := 0
	for _, w := range writes {
		ops += w.Ops
	}
	f.ops += ops
	f.mostOps = max(f.mostOps, f.ops)
	took := f.took
	f.mu.Unlock()
	<-time.After(took)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.ops = f.running-1, f.ops-ops
	if f.tamper != nil {
		return f.tamper(writes)
	}
	f.execute(writes...)
	return nil
}

// execute settles the writes with their payloads. The caller holds mu.
func (f *fakeStore) execute(writes ...*write) {
	if f.executed == nil {
		f.executed = map[*write]int{}
	}
	for _, w := range writes {
		f.executed[w]++
		w.Settle(w.Payload, nil)
	}
}

// payloads returns what was sent, batch by batch.
func (f *fakeStore) payloads() (all [][]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		var one []int
		for _, w := range b {
			one = append(one, w.Payload)
		}
		all = append(all, one)
	}
	return all
}

var limits = batch.Limits{Ops: 10, Bytes: 1000, InFlight: 2, Most: 8, Linger: time.Millisecond}

func join(payload int, keys ...string) *write {
	return &write{Tenant: "acme", Keys: keys, Ops: 1, Bytes: 10, Payload: payload}
}

// withCommitter runs a test in virtual time with a committer whose batches take a moment.
func withCommitter(
	t *testing.T, l batch.Limits, test func(t *testing.T, c *committer, f *fakeStore),
) {
	bubble.Test(t, func(t *testing.T) {
		f := &fakeStore{t: t, took: 10 * time.Millisecond}
		c := batch.NewCommitter(l, f.send, nil)
		test(t, c, f)
		c.Close()
		if n := c.Kept(); n != 0 {
			t.Errorf("%d things are remembered of writes that are done", n)
		}
	})
}

// handIn has writes wait in the given order.
func handIn(t *testing.T, c *committer, writes ...*write) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, w := range writes {
		all.Go(func() {
			if out, err := c.Do(context.Background(), w); err != nil || out != w.Payload {
				t.Errorf("write %d: %d, %v", w.Payload, out, err)
			}
		})
		synctest.Wait()
	}
	return &all
}

// TestLongChainHoldsUpNothingElse: of the joins of one lock each goes alone, in order
// and several at once; what else is written shares the next batch, whatever waits.
func TestLongChainHoldsUpNothingElse(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 30 {
			writes = append(writes, join(i, "hot"))
		}
		all := handIn(t, c, writes...)
		all2 := handIn(t, c, join(100, "other"), join(101, "release"))
		all.Wait()
		all2.Wait()
		sent := f.payloads()
		if !slices.ContainsFunc(
			sent, func(writes []int) bool { return slices.Equal(writes, []int{8, 100, 101}) },
		) {
			t.Errorf("batches are %v, want the other writes in the one after those in flight", sent)
		}
		for i, writes := range sent { // those that begin at one instant do so in any order
			if writes[0] <= i-limits.Most || writes[0] >= i+limits.Most {
				t.Fatalf("batches are %v, want the joins in order", sent)
			}
		}
		if f.most != limits.Most {
			t.Errorf("%d batches were in flight, want %d", f.most, limits.Most)
		}
	})
}

// TestWhatCanShareGathers: no more than a few batches are in flight.
func TestWhatCanShareGathers(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 32 {
			writes = append(writes, join(i, fmt.Sprint("lock", i)))
		}
		handIn(t, c, writes...).Wait()
		if f.most != limits.InFlight || len(f.batches) != 5 {
			t.Errorf(
				"%d in flight, batches %v; want %d and the last three full", f.most, f.payloads(),
				limits.InFlight,
			)
		}
	})
}

// TestOneBatchUnderWay: a store whose calls end soon gets one batch after the other, also if the
// next one is full.
func TestOneBatchUnderWay(t *testing.T) {
	inline := limits
	inline.Inline = true
	withCommitter(t, inline, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 2*limits.Ops + 1 {
			writes = append(writes, join(i, fmt.Sprint("lock", i)))
		}
		handIn(t, c, writes...).Wait()
		if f.most != 1 || len(f.batches) != 3 {
			t.Errorf("%d in flight, batches %v; want one after the other", f.most, f.payloads())
		}
	})
}

// TestLongChainBringsNoFullBatchesUnderWay: while joins of one lock are pending, more batches are
// under way, but not more operations: what is written next would wait for them.
func TestLongChainBringsNoFullBatchesUnderWay(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 400 {
			key := "hot"
			if i%8 > 0 {
				key = fmt.Sprint("lock", i)
			}
			writes = append(writes, join(i, key))
		}
		handIn(t, c, writes...).Wait()
		if f.mostOps >= (limits.InFlight+1)*limits.Ops || f.most != limits.Most {
			t.Errorf("%d operations in flight, in %d batches: %v", f.mostOps, f.most, f.payloads())
		}
	})
}

// TestBatchIsBoundedInBytes: also in bytes, and what is larger goes alone.
func TestBatchIsBoundedInBytes(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		first, second := join(1, "a"), join(2, "b") // keep the two workers busy
		big := []*write{join(3, "c"), join(4, "d"), join(5, "e"), join(6, "f")}
		big[0].Bytes, big[1].Bytes, big[2].Bytes = 600, 600, 5000
		handIn(t, c, append([]*write{first, second}, big...)...).Wait()
		sent := f.payloads()
		slices.SortFunc(sent, slices.Compare) // those that begin at one instant do so in any order
		if got, want := fmt.Sprint(sent), "[[1] [2] [3] [4] [5] [6]]"; got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
	})
}

// TestPatience: a patient write goes with the next urgent one, or after the linger.
func TestPatience(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		alone, along, later := join(1, "a"), join(2, "b"), join(4, "d")
		for _, w := range []*write{alone, along, later} {
			w.Lingers = true
		}
		began := time.Now()
		all := handIn(t, c, alone)
		if len(f.payloads()) != 0 {
			t.Error("a patient write was sent at once")
		}
		all.Wait()
		if took := time.Since(began); took != f.took+limits.Linger {
			t.Errorf("a patient write that nothing takes along took %v", took)
		}
		began = time.Now()
		all = handIn(t, c, along, join(3, "c"))
		all.Wait()
		if took := time.Since(began); took != f.took {
			t.Errorf("a patient write that an urgent one takes along took %v", took)
		}
		handIn(t, c, later).Wait() // the timer restarts
		if got, want := fmt.Sprint(f.payloads()), "[[1] [2 3] [4]]"; got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
	})
}

// TestWithdrawn: a write that is not sent yet is taken back wherever it stands, and makes
// room; those behind it go on.
func TestWithdrawn(t *testing.T) {
	l := limits
	l.Pending.PerKey = batch.Size{Writes: 4, Bytes: 1000}
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 8 {
			writes = append(writes, join(i, "hot"))
		}
		all := handIn(t, c, writes...)
		ctx, cancel := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		for i := range 4 {
			w := join(100+i, "hot")
			if i == 3 {
				w.Keys = []string{"hot", "cold"}
			}
			gone.Go(func() {
				if _, err := c.Do(ctx, w); !errors.Is(err, batch.ErrNotSent) {
					t.Errorf("a write that was withdrawn: %v", err)
				}
			})
			synctest.Wait()
		}
		behind := handIn(t, c, join(200, "cold"))
		cancel()
		gone.Wait()
		again := handIn(t, c, join(201, "hot"))
		for _, g := range []*sync.WaitGroup{all, behind, again} {
			g.Wait()
		}
		if got, want := fmt.Sprint(f.payloads()[8:]), "[[200 201]]"; got != want {
			t.Errorf("after those in flight %s were sent, want %s", got, want)
		}
	})
}

// TestGivenUp: a caller that stopped waiting for a sent write can still learn its outcome,
// and it is not sent again.
func TestGivenUp(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		executed, handedBack := join(1, "a"), join(2, "b")
		f.tamper = func(writes []*write) (again [][]*write) {
			for _, w := range writes {
				if w == handedBack {
					again = append(again, []*write{w})
					continue
				}
				f.execute(w)
			}
			return again
		}
		for _, w := range []*write{executed, handedBack} {
			ctx, cancel := context.WithTimeout(t.Context(), f.took/2)
			if _, err := c.Do(ctx, w); !errors.Is(err, batch.ErrUnknown) ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("write %d given up: %v", w.Payload, err)
			}
			if _, err := w.Late(ctx); !errors.Is(err, batch.ErrUnknown) {
				t.Errorf("write %d, asked too soon: %v", w.Payload, err)
			}
			cancel()
		}
		if out, err := executed.Late(t.Context()); out != 1 || err != nil {
			t.Errorf("the late outcome of what was executed: %d, %v", out, err)
		}
		if _, err := handedBack.Late(t.Context()); !errors.Is(err, batch.ErrNotSent) {
			t.Errorf("the late outcome of what was handed back: %v", err)
		}
		if len(f.batches) != 2 {
			t.Errorf("sent: %v, want each once", f.payloads())
		}
	})
}

// TestCloseLosesNothing: what is in flight is waited for, the rest is known not to have
// been sent.
func TestCloseLosesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := &fakeStore{t: t, took: time.Second}
		c := batch.NewCommitter(limits, f.send, nil)
		var all sync.WaitGroup
		var mu sync.Mutex
		results := map[string]int{}
		for i := range 100 {
			w := join(i, "hot")
			w.Lingers = i%2 == 1
			all.Go(func() {
				_, err := c.Do(context.Background(), w)
				mu.Lock()
				defer mu.Unlock()
				results[fmt.Sprint(err)]++
			})
			synctest.Wait()
		}
		<-time.After(limits.Linger)
		synctest.Wait()
		c.Close()
		all.Wait()
		if results["<nil>"] != limits.Most || results[batch.ErrNotSent.Error()] != 100-limits.Most {
			t.Errorf("%v, want %d in flight to have succeeded", results, limits.Most)
		}
		if _, err := c.Do(t.Context(), join(1, "a")); !errors.Is(err, batch.ErrNotSent) {
			t.Errorf("a write after Close: %v", err)
		}
	})
}

// TestClosedBetweenAttempts: of a write that was handed back and may have been executed
// the committer does not claim that it was not, if the committer closes before it is sent again.
func TestClosedBetweenAttempts(t *testing.T) {
	for mayBeDone, want := range map[bool]error{true: batch.ErrUnknown, false: batch.ErrNotSent} {
		withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
			f.tamper = func(writes []*write) (again [][]*write) {
				c.Stop()
				writes[0].OutcomeUnknown = mayBeDone
				return [][]*write{writes}
			}
			if _, err := c.Do(t.Context(), join(1, "a")); !errors.Is(err, want) {
				t.Errorf("may be done %t: %v, want %v", mayBeDone, err, want)
			}
		})
	}
}

// TestManyOfOneLock: a batch is chosen in constant time for each of its writes. With a
// walk over all that is pending this would take minutes.
func TestManyOfOneLock(t *testing.T) {
	l := limits
	l.Pending.PerKey = batch.Size{Writes: 1 << 30, Bytes: 1 << 40}
	l.Pending.PerTenant, l.Pending.InAll = l.Pending.PerKey, l.Pending.PerKey
	bubble.Test(t, func(t *testing.T) {
		const n = 40_000
		hold := make(chan struct{})
		c := batch.NewCommitter(l, func(writes []*write) [][]*write {
			<-hold
			for _, w := range writes {
				w.Settle(0, nil)
			}
			return nil
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var kept, gone sync.WaitGroup
		for i := range n {
			if i%2 == 0 {
				kept.Go(func() { _, _ = c.Do(t.Context(), join(i, "hot")) })
			} else {
				gone.Go(func() { _, _ = c.Do(ctx, join(i, "hot")) })
			}
		}
		synctest.Wait()
		cancel()
		gone.Wait()
		close(hold)
		kept.Wait()
		c.Close()
	})
}

var errRefused = errors.New("refused")
