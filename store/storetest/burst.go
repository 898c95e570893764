package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func burstCases() []testCase {
	return []testCase{
		{name: "burst/joins of one lock are written or refused honestly", run: burst, alone: true},
	}
}

// burstSize is more than can share anything, and than is written while a call lasts if
// one waits for the other.
const burstSize = 4000

// burst has thousands join one lock at once while another tenant works. They are written
// in time or refused at once, and who was told anything but that he joined is not there.
func burst(t *trial) {
	var mu sync.Mutex
	joined := map[lock.ID]*lock.Entry{}
	var refused, late atomic.Int64
	ctx, stop := context.WithCancel(t.ctx)
	var beside sync.WaitGroup
	var cycles int
	beside.Go(func() { cycles = t.bystander(ctx) })
	together(burstSize, func(int) {
		draft, began := t.draft("hot"), time.Now()
		draft.Patient = true
		e, _, err := t.A.Enqueue(t.ctx, draft)
		var le *lock.Error
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			joined[e.ID] = e
		case errors.As(err, &le) && le.Code == lock.Overloaded:
			if refused.Add(1); le.Ambiguous || le.RetryAfter < time.Second {
				t.Errorf("a refusal says %+v", le)
			}
		default:
			t.wantUnavailable("Enqueue in a burst", err)
			t.wantSoon("Enqueue in a burst", began, t.CallLimit)
			late.Add(1)
		}
	})
	stop()
	beside.Wait()
	t.Logf("%d joined, %d were refused, %d were late, beside %d cycles of another tenant", len(joined), refused.Load(), late.Load(), cycles)
	if late.Load() > burstSize/50 { // a machine that is busy with something else may stand still for a moment
		t.Errorf("%d were told after seconds that the store did not answer", late.Load())
	}
	if len(joined) == 0 || cycles == 0 {
		t.Error("too few to mean anything")
	}
	t.eventually(recovery, "exactly those who joined are in the queue", func() bool {
		queue := t.queue(t.B, t.ref("hot"))
		return len(queue) == len(joined) && !slices.ContainsFunc(queue, func(e *lock.Entry) bool { return joined[e.ID] == nil })
	})
}

// bystander takes and releases locks of another tenant until ctx ends.
func (t *trial) bystander(ctx context.Context) (cycles int) {
	for ctx.Err() == nil {
		began := time.Now()
		e, _, err := t.A.Enqueue(t.ctx, draft("bystander", fmt.Sprint("lock-", cycles%7)))
		if err != nil {
			t.Errorf("Enqueue beside a burst, after %v: %v", time.Since(began), err)
			return cycles
		}
		if err := t.A.Remove(t.ctx, e, lock.Released); err != nil {
			t.Errorf("Remove beside a burst: %v", err)
			return cycles
		}
		cycles++
	}
	return cycles
}
