package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestCommitterProperties: whatever comes, fails and is given up, in whatever order.
func TestCommitterProperties(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { (&random{rand: rand.New(rand.NewPCG(seed, 7))}).run(t) })
		})
	}
}

// random is a run of a committer with random writes on a store that fails at random.
type random struct {
	rand *rand.Rand // used under mu

	mu       sync.Mutex
	t        *testing.T
	limits   batch.Limits
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

func (r *random) run(t *testing.T) {
	r.t, r.sent, r.inFlight, r.executed = t, map[string]sending{}, map[*write]bool{}, map[*write]int{}
	r.limits = batch.Limits{
		Ops: 1 + r.rand.IntN(12), Bytes: 20 + r.rand.IntN(200), InFlight: 1 + r.rand.IntN(3),
		Linger: 3 * time.Millisecond, Inline: r.rand.IntN(2) == 0,
	}
	r.limits.Most = r.limits.InFlight + r.rand.IntN(6)
	c := batch.NewCommitter(r.limits, r.send, nil)
	var all sync.WaitGroup
	writes := make([]*write, 300)
	for i := range writes {
		r.mu.Lock()
		w := &write{
			Tenant: fmt.Sprint("t", r.rand.IntN(3)), Ops: 1 + r.rand.IntN(4), Bytes: r.rand.IntN(60),
			Payload: i, Lingers: r.rand.IntN(3) == 0, Must: r.rand.IntN(4) == 0,
		}
		for range r.rand.IntN(4) {
			w.Keys = append(w.Keys, fmt.Sprint("k", r.rand.IntN(6)))
		}
		writes[i] = w
		ctx, cancel := context.WithCancel(t.Context())
		if r.rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(
				t.Context(), time.Duration(r.rand.IntN(30_000))*time.Microsecond,
			)
		}
		if r.rand.IntN(2) == 0 {
			w.Gone, ctx = ctx.Done(), t.Context()
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

// one hands in a write and compares the answer with what happened.
func (r *random) one(ctx context.Context, c *committer, w *write) {
	out, err := c.Do(ctx, w)
	if errors.Is(err, batch.ErrUnknown) {
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

func (r *random) send(writes []*write) (again [][]*write) {
	r.mu.Lock()
	if r.running++; r.running > r.limits.Most {
		r.t.Errorf("%d batches in flight, of %d", r.running, r.limits.Most)
	}
	r.check(writes)
	took := time.Duration(r.rand.IntN(8000)) * time.Microsecond
	r.mu.Unlock()
	<-time.After(took)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	switch what := r.rand.IntN(6); {
	case what == 0 && len(writes) > 1:
		return batch.Halves(writes)
	case what == 1:
		again = [][]*write{writes[:1]}
		writes = writes[1:]
	}
	for _, w := range writes {
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
func (r *random) check(writes []*write) {
	ops, bytes := 0, 0
	taken := map[string]*write{}
	for _, w := range writes {
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
	if len(writes) > 1 && (ops > r.limits.Ops || bytes > r.limits.Bytes) {
		r.t.Errorf(
			"a batch of %d operations and %d bytes, of %d and %d", ops, bytes, r.limits.Ops, r.limits.Bytes,
		)
	}
}
