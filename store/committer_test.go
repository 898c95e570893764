package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

type (
	write     = store.Write[int, int]
	committer = store.Committer[int, int]
)

// fakeStore executes batches after a while, and remembers what it was sent.
type fakeStore struct {
	t      *testing.T
	took   time.Duration
	tamper func(batch []*write) (again [][]*write) // nil: every write is executed

	mu       sync.Mutex
	batches  [][]*write
	running  int
	most     int
	executed map[*write]int
}

func (f *fakeStore) send(batch []*write) [][]*write {
	f.mu.Lock()
	f.batches = append(f.batches, slices.Clone(batch))
	f.running++
	f.most = max(f.most, f.running)
	took := f.took
	f.mu.Unlock()
	<-time.After(took)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if f.tamper != nil {
		return f.tamper(batch)
	}
	f.execute(batch...)
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

var limits = store.Limits{Ops: 10, Bytes: 1000, InFlight: 2, Most: 8, Linger: time.Millisecond}

func join(payload int, keys ...string) *write {
	return &write{Tenant: "acme", Keys: keys, Ops: 1, Bytes: 10, Payload: payload}
}

// bubble runs a test in virtual time with a committer whose batches take a moment.
func bubble(t *testing.T, l store.Limits, test func(t *testing.T, c *committer, f *fakeStore)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{t: t, took: 10 * time.Millisecond}
		c := store.NewCommitter(l, f.send, nil)
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
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 30 {
			writes = append(writes, join(i, "hot"))
		}
		all := handIn(t, c, writes...)
		all2 := handIn(t, c, join(100, "other"), join(101, "release"))
		all.Wait()
		all2.Wait()
		sent := f.payloads()
		if !slices.ContainsFunc(sent, func(batch []int) bool { return slices.Equal(batch, []int{8, 100, 101}) }) {
			t.Errorf("batches are %v, want the other writes in the one after those in flight", sent)
		}
		for i, batch := range sent { // those that begin at one instant do so in any order
			if batch[0] <= i-limits.Most || batch[0] >= i+limits.Most {
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
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		var writes []*write
		for i := range 32 {
			writes = append(writes, join(i, fmt.Sprint("lock", i)))
		}
		handIn(t, c, writes...).Wait()
		if f.most != limits.InFlight || len(f.batches) != 5 {
			t.Errorf("%d in flight, batches %v; want %d and the last three full", f.most, f.payloads(), limits.InFlight)
		}
	})
}

// TestSlowStoreIsSentLess: what a slow store has to do at once does not grow with what
// waits, or the time of all would run out together.
func TestSlowStoreIsSentLess(t *testing.T) {
	l := limits
	l.Most, l.Pending.Budget = 64, time.Hour
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = time.Second
		var writes []*write
		for i := range 400 {
			writes = append(writes, join(i, "hot"))
		}
		all := handIn(t, c, writes...)
		<-time.After(3*f.took + f.took/2)
		f.mu.Lock()
		if f.running > 4 {
			t.Errorf("a slow store has %d batches to write at once", f.running)
		}
		f.took, f.most = time.Millisecond, 0
		f.mu.Unlock()
		all.Wait()
		if f.most < 40 {
			t.Errorf("a store that is fast again has %d at once", f.most)
		}
	})
}

// TestBatchIsBoundedInBytes: also in bytes, and what is larger goes alone.
func TestBatchIsBoundedInBytes(t *testing.T) {
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
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
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
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
		handIn(t, c, later).Wait() // the timer runs anew
		if got, want := fmt.Sprint(f.payloads()), "[[1] [2 3] [4]]"; got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
	})
}

// TestOverload: what could not be written in time is refused at once, and honestly.
func TestOverload(t *testing.T) {
	small := func(b store.Backlog) store.Limits {
		l := limits
		if l.Pending = b; b.Budget == 0 {
			l.Pending.Budget = time.Hour
		}
		return l
	}
	big := join(0, "hot")
	big.Bytes = 500
	stranger := join(0, "cold")
	stranger.Tenant = "other"
	for name, c := range map[string]struct {
		bound      store.Backlog
		over, fits *write
	}{
		"writes of a key":     {store.Backlog{PerKey: store.Size{Writes: 5, Bytes: 1000}}, join(0, "hot"), join(0, "cold")},
		"bytes of a key":      {store.Backlog{PerKey: store.Size{Writes: 50, Bytes: 400}}, big, join(0, "hot")},
		"writes of a tenant":  {store.Backlog{PerTenant: store.Size{Writes: 5, Bytes: 1000}}, join(0, "cold"), stranger},
		"bytes of a tenant":   {store.Backlog{PerTenant: store.Size{Writes: 50, Bytes: 400}}, big, join(0, "cold")},
		"writes in all":       {store.Backlog{InAll: store.Size{Writes: 5, Bytes: 1000}}, stranger, nil},
		"bytes in all":        {store.Backlog{InAll: store.Size{Writes: 50, Bytes: 400}}, big, stranger},
		"more than in budget": {store.Backlog{Budget: 300 * time.Millisecond}, join(0, "hot"), join(0, "cold")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, small(c.bound), func(t *testing.T, committer *committer, f *fakeStore) {
				handIn(t, committer, join(-1, "measure")).Wait() // 10 ms / 2 from batch to batch
				n := 13                                          // 8 in flight and 5 pending
				if c.bound.Budget > 0 {
					n = 3000
				}
				var writes []*write
				for i := range n {
					w := join(i, "hot")
					w.Must = c.bound.Budget > 0
					writes = append(writes, w)
				}
				all := handIn(t, committer, writes...)
				if c.bound.Budget > 0 {
					<-time.After(2100 * time.Millisecond) // 1 680 are written, and the rest takes 1.6 s
				}
				began := time.Now()
				_, err := committer.Do(t.Context(), c.over)
				var e *lock.Error
				if !errors.As(err, &e) || e.Code != lock.Overloaded || e.OutcomeUnknown || e.RetryAfter < time.Second || time.Since(began) != 0 {
					t.Errorf("the write over the bound: %v (%+v) after %v", err, e, time.Since(began))
				}
				must := join(1000, "hot")
				must.Must, must.Bytes = true, c.over.Bytes
				late := []*write{must}
				if c.fits != nil {
					late = []*write{c.fits, must}
				}
				handIn(t, committer, late...).Wait()
				all.Wait()
				if left := committer.Pending(); left != (store.Size{}) {
					t.Errorf("pending at the end: %+v", left)
				}
			})
		})
	}
}

// handInAtOnce has n writes of one lock, due after 4 s, handed in, and returns how each
// ended and when.
func handInAtOnce(c *committer, n int) (errs []error, took []time.Duration) {
	errs, took = make([]error, n), make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		w := join(i, "hot")
		w.Due = time.Now().Add(4 * time.Second)
		all.Go(func() {
			began := time.Now()
			_, errs[i] = c.Do(context.Background(), w)
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	return errs, took
}

// TestBurstOutlastsACall: what came with many others is written although its time is
// over, for as long as others are, and is told that it was too much if that takes too
// long.
func TestBurstOutlastsACall(t *testing.T) {
	l := limits
	l.Pending.Budget = 8 * time.Second
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = 200 * time.Millisecond // 8 at once: 25 ms for each
		errs, took := handInAtOnce(c, 1000)
		written := 0
		for i, err := range errs {
			switch {
			case err == nil && took[i] < 15*time.Second:
				written++
			case !errors.Is(err, lock.Overloaded) || took[i] > 13*time.Second:
				t.Errorf("after %v: %v", took[i], err)
			}
		}
		if written < 400 {
			t.Errorf("%d were written, want those for which there were 12 s", written)
		}
	})
}

// TestStoreFallsSilent: who is pending is told of a store that is lost when his time is
// over, or soon after if others were written until then.
func TestStoreFallsSilent(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 6 * time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
				f.took = 200 * time.Millisecond
				silent := time.AfterFunc(after, func() {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.took = time.Minute
				})
				defer silent.Stop()
				errs, took := handInAtOnce(c, 1000)
				latest := max(4*time.Second, after+3*time.Second)
				pending := 0
				for i, err := range errs {
					switch {
					case errors.Is(err, store.ErrNotSent):
						pending++
					case err != nil && !errors.Is(err, store.ErrUnknown):
						t.Errorf("after %v: %v", took[i], err)
					}
					if took[i] > latest {
						t.Errorf("after %v: %v; the store was lost after %v", took[i], err, after)
					}
				}
				if pending < 700 {
					t.Errorf("%d of those pending were told, want most", pending)
				}
			})
		})
	}
}

// TestTenantsTakeTurns: whoever has thousands to write does not make others wait for them.
func TestTenantsTakeTurns(t *testing.T) {
	l := limits
	l.InFlight, l.Ops = 1, 2
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		var many []*write
		for i := range 50 {
			many = append(many, join(i, fmt.Sprint("lock", i)))
		}
		all := handIn(t, c, many...)
		other, third := join(100, "lock"), join(101, "lock of a third")
		other.Tenant, third.Tenant = "other", "third"
		handIn(t, c, other, third).Wait()
		if got, want := fmt.Sprint(f.payloads()[:3]), "[[0] [1 100] [101 2]]"; got != want {
			t.Errorf("the first batches are %s, want %s", got, want)
		}
		all.Wait()
	})
}

// TestOthersAreNoReasonToRefuse: what one tenant has pending is not before all of what
// another writes.
func TestOthersAreNoReasonToRefuse(t *testing.T) {
	l := limits
	l.InFlight, l.Ops, l.Pending.Budget = 1, 1, time.Second
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		handIn(t, c, join(-1, "measure")).Wait()
		var many []*write
		for i := range 1000 {
			w := join(i, fmt.Sprint("lock", i))
			w.Must = true
			many = append(many, w)
		}
		all := handIn(t, c, many...)
		other := join(2000, "lock")
		other.Tenant = "other"
		handIn(t, c, other).Wait()
		if _, err := c.Do(t.Context(), join(2001, "lock")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more of the tenant who has thousands pending: %v", err)
		}
		all.Wait()
	})
}

// TestPaceIsTheBurstsOwn: however slow the large batches before it were, those who come
// first in a burst are not refused for it.
func TestPaceIsTheBurstsOwn(t *testing.T) {
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = 200 * time.Millisecond
		for range 2 {
			errs, _ := handInAtOnce(c, 150) // a burst that is over, of 25 ms for each
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			<-time.After(3 * time.Second)
		}
		f.took = time.Millisecond
		errs, _ := handInAtOnce(c, 2000)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("a burst that the store writes in a moment: %v", err)
		}
		<-time.After(3 * time.Second)
		f.took = 200 * time.Millisecond // a store that is slow at first
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				errs, _ := handInAtOnce(c, 700)
				if err := errors.Join(errs...); err != nil {
					t.Errorf("a burst that begins slowly: %v", err)
				}
			})
			<-time.After(300 * time.Millisecond)
			f.mu.Lock()
			f.took = 100 * time.Microsecond
			f.mu.Unlock()
		}
		all.Wait()
	})
}

// TestStoreThatStandsStill: because the store stood still for a moment, which all that were
// under way had to wait for, nobody is refused who can be written in time.
func TestStoreThatStandsStill(t *testing.T) {
	l := limits
	l.Most, l.Pending.Budget = 64, 4*time.Second
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		takes := func(d time.Duration) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.took = d
		}
		var all sync.WaitGroup
		burst := func(n int) {
			all.Go(func() {
				errs, _ := handInAtOnce(c, n)
				if err := errors.Join(errs...); err != nil {
					t.Errorf("of %d: %v", n, err)
				}
			})
		}
		takes(40 * time.Millisecond)
		burst(6000)
		<-time.After(2100 * time.Millisecond) // 3 300 are written
		takes(time.Second)
		<-time.After(40 * time.Millisecond)
		takes(40 * time.Millisecond)
		<-time.After(time.Second)
		burst(300)
		all.Wait()
	})
}

// TestReserve: a write that has to wait for something else first is refused when it comes,
// and counts like one that is pending until then.
func TestReserve(t *testing.T) {
	l := limits
	l.Pending.PerKey = store.Size{Writes: 3, Bytes: 1000}
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		var releases []func()
		for i := range 3 {
			release, err := c.Reserve(join(i, "hot"))
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		if _, err := c.Reserve(join(4, "hot")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more than there is room for: %v", err)
		}
		if _, err := c.Do(t.Context(), join(5, "hot")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more that does not wait for anything: %v", err)
		}
		handIn(t, c, join(6, "cold")).Wait()
		releases[0]()
		handIn(t, c, join(7, "hot")).Wait()
		releases[1]()
		releases[2]()
	})
}

// TestWithin: a write is refused if it would be too late for who asks for it.
func TestWithin(t *testing.T) {
	l := limits
	l.Pending.Budget = time.Hour
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		handIn(t, c, join(-1, "measure")).Wait()
		var writes []*write
		for i := range 3000 {
			writes = append(writes, join(i, "hot"))
		}
		all := handIn(t, c, writes...)
		<-time.After(2100 * time.Millisecond) // 1 680 are written, and the rest takes 1.6 s
		hasty, patient := join(4000, "hot"), join(4001, "hot")
		hasty.Within, patient.Within = 500*time.Millisecond, 2*time.Second
		if _, err := c.Do(t.Context(), hasty); !errors.Is(err, lock.Overloaded) {
			t.Errorf("a write that would be too late: %v", err)
		}
		handIn(t, c, patient).Wait()
		all.Wait()
	})
}

// TestWithdrawn: a write that is not sent yet is taken back wherever it stands, and makes
// room; those behind it go on.
func TestWithdrawn(t *testing.T) {
	l := limits
	l.Pending.PerKey = store.Size{Writes: 4, Bytes: 1000}
	bubble(t, l, func(t *testing.T, c *committer, f *fakeStore) {
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
				if _, err := c.Do(ctx, w); !errors.Is(err, store.ErrNotSent) {
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

// TestGivenUp: who does not wait for a write that was sent can still learn its outcome,
// and it is not sent again.
func TestGivenUp(t *testing.T) {
	bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		executed, handedBack := join(1, "a"), join(2, "b")
		f.tamper = func(batch []*write) (again [][]*write) {
			for _, w := range batch {
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
			if _, err := c.Do(ctx, w); !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("write %d given up: %v", w.Payload, err)
			}
			if _, err := w.Late(ctx); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("write %d, asked too soon: %v", w.Payload, err)
			}
			cancel()
		}
		if out, err := executed.Late(t.Context()); out != 1 || err != nil {
			t.Errorf("the late outcome of what was executed: %d, %v", out, err)
		}
		if _, err := handedBack.Late(t.Context()); !errors.Is(err, store.ErrNotSent) {
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
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{t: t, took: time.Second}
		c := store.NewCommitter(limits, f.send, nil)
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
		if results["<nil>"] != limits.Most || results[store.ErrNotSent.Error()] != 100-limits.Most {
			t.Errorf("%v, want %d in flight to have succeeded", results, limits.Most)
		}
		if _, err := c.Do(t.Context(), join(1, "a")); !errors.Is(err, store.ErrNotSent) {
			t.Errorf("a write after Close: %v", err)
		}
	})
}

// TestClosedBetweenAttempts: of a write that was handed back and may have been executed
// nobody says that it was not, if the committer closes before it is sent again.
func TestClosedBetweenAttempts(t *testing.T) {
	for mayBeDone, want := range map[bool]error{true: store.ErrUnknown, false: store.ErrNotSent} {
		bubble(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
			f.tamper = func(batch []*write) (again [][]*write) {
				c.Stop()
				batch[0].OutcomeUnknown = mayBeDone
				return [][]*write{batch}
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
	l.Pending.PerKey = store.Size{Writes: 1 << 30, Bytes: 1 << 40}
	l.Pending.PerTenant, l.Pending.InAll = l.Pending.PerKey, l.Pending.PerKey
	l.Pending.Budget = time.Hour
	synctest.Test(t, func(t *testing.T) {
		const n = 40_000
		hold := make(chan struct{})
		c := store.NewCommitter(l, func(batch []*write) [][]*write {
			<-hold
			for _, w := range batch {
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

// TestCommitterProperties: whatever comes, fails and is given up, in whatever order.
func TestCommitterProperties(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { (&random{rand: rand.New(rand.NewPCG(seed, 7))}).run(t) })
		})
	}
}

// random is a run of a committer with random writes on a store that fails at random.
type random struct {
	rand *rand.Rand // used under mu

	mu       sync.Mutex
	t        *testing.T
	limits   store.Limits
	running  int
	sent     map[string]sending // per key the newest write that was sent
	inFlight map[*write]bool
	executed map[*write]int
}

// sending is which write was sent, and when. Of two that are sent at one instant either
// may come first: they are in flight together.
type sending struct {
	payload int
	at      time.Time
}

var errRefused = errors.New("refused")

func (r *random) run(t *testing.T) {
	r.t, r.sent, r.inFlight, r.executed = t, map[string]sending{}, map[*write]bool{}, map[*write]int{}
	r.limits = store.Limits{
		Ops: 1 + r.rand.IntN(12), Bytes: 20 + r.rand.IntN(200), InFlight: 1 + r.rand.IntN(3), Linger: 3 * time.Millisecond, Inline: r.rand.IntN(2) == 0,
	}
	r.limits.Most = r.limits.InFlight + r.rand.IntN(6)
	c := store.NewCommitter(r.limits, r.send, nil)
	var all sync.WaitGroup
	writes := make([]*write, 300)
	for i := range writes {
		r.mu.Lock()
		w := &write{
			Tenant: fmt.Sprint("t", r.rand.IntN(3)), Ops: 1 + r.rand.IntN(4), Bytes: r.rand.IntN(60), Payload: i,
			Lingers: r.rand.IntN(3) == 0, Must: r.rand.IntN(4) == 0,
		}
		for range r.rand.IntN(4) {
			w.Keys = append(w.Keys, fmt.Sprint("k", r.rand.IntN(6)))
		}
		writes[i] = w
		ctx, cancel := context.WithCancel(t.Context())
		if r.rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(r.rand.IntN(30_000))*time.Microsecond)
		}
		r.mu.Unlock()
		all.Go(func() {
			defer cancel()
			r.one(ctx, c, w)
		})
		synctest.Wait()
		if r.draw(2) == 0 {
			<-time.After(time.Duration(r.draw(3000)) * time.Microsecond)
		}
	}
	if r.draw(2) == 0 {
		c.Close()
	}
	all.Wait()
	c.Close()
	if n := c.Kept(); n != 0 {
		t.Errorf("%d things are remembered of writes that are done", n)
	}
}

func (r *random) draw(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

// one hands in a write and compares what it is told with what happened.
func (r *random) one(ctx context.Context, c *committer, w *write) {
	out, err := c.Do(ctx, w)
	if errors.Is(err, store.ErrUnknown) {
		out, err = w.Late(context.Background())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	want := 0
	if err == nil {
		want = 1
	}
	if r.executed[w] != want || err == nil && out != w.Payload {
		r.t.Errorf("write %d: %d, %v; it was executed %d times", w.Payload, out, err, r.executed[w])
	}
	if w.Must && errors.Is(err, lock.Overloaded) {
		r.t.Errorf("write %d was refused", w.Payload)
	}
}

func (r *random) send(batch []*write) (again [][]*write) {
	r.mu.Lock()
	if r.running++; r.running > r.limits.Most {
		r.t.Errorf("%d batches in flight, of %d", r.running, r.limits.Most)
	}
	r.check(batch)
	took := time.Duration(r.rand.IntN(8000)) * time.Microsecond
	r.mu.Unlock()
	<-time.After(took)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	switch what := r.rand.IntN(6); {
	case what == 0 && len(batch) > 1:
		return store.Apart(batch)
	case what == 1:
		again = [][]*write{batch[:1]}
		batch = batch[1:]
	}
	for _, w := range batch {
		if r.rand.IntN(8) == 0 {
			w.Settle(0, errRefused)
			continue
		}
		r.executed[w]++
		w.Settle(w.Payload, nil)
	}
	return again
}

// check looks at a batch before it is executed. The caller holds mu.
func (r *random) check(batch []*write) {
	ops, bytes := 0, 0
	taken := map[string]*write{}
	for _, w := range batch {
		if w.Abandoned() {
			r.t.Errorf("write %d is sent although it was given up", w.Payload)
		}
		ops, bytes = ops+w.Ops, bytes+w.Bytes
		first := !r.inFlight[w]
		r.inFlight[w] = true
		for _, k := range w.Keys {
			if other := taken[k]; other != nil && other != w {
				r.t.Errorf("writes %d and %d share a batch and %s", other.Payload, w.Payload, k)
			}
			taken[k] = w
			newest := r.sent[k]
			if first && newest.payload > w.Payload && newest.at.Before(time.Now()) {
				r.t.Errorf("write %d is sent after %d, which came later, for %s", w.Payload, newest.payload, k)
			}
			if w.Payload > newest.payload {
				r.sent[k] = sending{w.Payload, time.Now()}
			}
		}
	}
	if len(batch) > 1 && (ops > r.limits.Ops || bytes > r.limits.Bytes) {
		r.t.Errorf("a batch of %d operations and %d bytes, of %d and %d", ops, bytes, r.limits.Ops, r.limits.Bytes)
	}
}
