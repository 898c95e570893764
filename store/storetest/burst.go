package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func burstCases() []testCase {
	return []testCase{
		{
			name: "burst/joins of one lock are written or refused honestly", run: burst, alone: true,
			inTime: true,
		},
		{
			name: "burst/a release passes the joins of its lock", run: releaseInABurst, alone: true,
			inTime: true,
		},
		{
			name: "burst/what is refused is refused on arrival", run: refusedOnArrival, needs: cut,
			alone: true, inTime: true,
		},
	}
}

// burstSize is more than can share anything, and than is written while a call lasts if
// one waits for the other.
const burstSize = 4000

// burst makes thousands of entries join one lock at once while another tenant works. Each join
// succeeds in time or fails at once, and an entry without a successful answer is not in the
// queue.
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
		draft.Lingers = true
		e, _, err := t.A.Enqueue(t.ctx, draft)
		var le *lock.Error
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			joined[e.ID] = e
		case errors.As(err, &le) && le.Code == lock.Overloaded:
			if refused.Add(1); le.OutcomeUnknown || le.RetryAfter < time.Second {
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
	t.Logf(
		"%d joined, %d were refused, %d were late, beside %d cycles of another tenant", len(joined),
		refused.Load(), late.Load(), cycles,
	)
	// a machine that is busy with something else may stand still for a moment
	if late.Load() > burstSize/50 {
		t.Errorf("%d were told after seconds that the store did not answer", late.Load())
	}
	if len(joined) == 0 || cycles == 0 {
		t.Error("too few to mean anything")
	}
	t.eventually(t.recovery(), "exactly those who joined are in the queue", func() bool {
		queue := t.queue(t.B, t.ref("hot"))
		return len(queue) == len(joined) &&
			!slices.ContainsFunc(queue, func(e *lock.Entry) bool { return joined[e.ID] == nil })
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

// releaseInABurst has the holder release while thousands join: the release does not wait
// behind them. Where no write waits, only the machine could make it late.
func releaseInABurst(t *trial) {
	if t.NoBound != "" {
		t.Logf("nothing waits: %s", t.NoBound)
		return
	}
	holder := t.enqueue(t.A, t.draft("hot"))
	var joined atomic.Int64
	some, released := make(chan struct{}), make(chan int64, 1)
	var release sync.WaitGroup
	release.Go(func() {
		<-some
		if err := t.A.Remove(t.ctx, holder, lock.Released); err != nil {
			t.Errorf("Remove in a burst: %v", err)
		}
		released <- joined.Load()
	})
	together(burstSize, func(int) {
		draft := t.draft("hot")
		draft.Lingers = true
		if _, _, err := t.A.Enqueue(t.ctx, draft); err == nil && joined.Add(1) == burstSize/20 {
			close(some)
		}
	})
	if joined.Load() < burstSize/20 {
		close(some)
		t.Errorf("%d joined, too few to mean anything", joined.Load())
	}
	release.Wait()
	if before := <-released; before > burstSize*3/4 {
		t.Errorf("%d of %d joined before the release of the lock was done", before, burstSize)
	}
}

// large is how many of the largest entries are more than may be pending for one lock.
const large = 1200

// refusedOnArrival has more large entries join than may be pending, at a client that is cut off.
// Once a join was rejected, another is so at once, and does not wait for the lost store first.
func refusedOnArrival(t *trial) {
	if t.NoBound != "" {
		t.Logf("no join is rejected: %s", t.NoBound)
		return
	}
	restore := t.CutB(t.T, Silent)
	var given atomic.Bool // a call waited for the store in vain
	full := make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	all.Go(func() {
		together(large, func(int) {
			_, _, err := t.B.Enqueue(t.ctx, t.largest())
			if t.rejected(err) {
				once.Do(func() { close(full) })
				return
			}
			given.Store(true)
			t.wantUnavailable("Enqueue at a client that is cut off", err)
		})
		once.Do(func() { t.Error("no join was rejected"); close(full) })
	})
	<-full
	began := time.Now()
	_, _, err := t.B.Enqueue(t.ctx, t.largest())
	took := time.Since(began)
	if !given.Load() && (!t.rejected(err) || took > t.CallLimit/2) {
		t.Errorf("a join over the bound returned after %v: %v", took, err)
	}
	all.Wait()
	restore()
	t.eventually(t.recovery(), "nothing is in the queue", func() bool {
		return len(t.queue(t.A, t.ref(largeName(0)))) == 0
	})
}

func largeName(i int) string { return fmt.Sprintf("%s-%02d", strings.Repeat("n", 190), i) }

// largest is a draft of an entry of the greatest size.
func (t *trial) largest() *lock.Entry {
	names := make([]string, 32)
	for i := range names {
		names[i] = largeName(i)
	}
	draft := t.draft(names...)
	draft.Metadata = map[string]string{"text": strings.Repeat("m", 1900)}
	return draft
}

// rejected reports whether a join was rejected because too many are pending, and checks the error.
func (t *trial) rejected(err error) bool {
	var le *lock.Error
	if !errors.As(err, &le) || le.Code != lock.Overloaded {
		return false
	}
	if le.OutcomeUnknown || le.RetryAfter < time.Second {
		t.Errorf("a rejection is %+v", le)
	}
	return true
}
