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
		{name: "burst/joins of one lock are written or refused honestly", run: burst, alone: true, inTime: true},
		{name: "burst/a release passes the joins of its lock", run: releaseInABurst, alone: true, inTime: true},
		{name: "burst/callers who go away leave nothing", run: leaversOfABurst, alone: true, inTime: true},
		{name: "burst/what is refused is refused on arrival", run: refusedOnArrival, needs: cut, alone: true, inTime: true},
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
	t.Logf("%d joined, %d were refused, %d were late, beside %d cycles of another tenant", len(joined), refused.Load(), late.Load(), cycles)
	if late.Load() > burstSize/50 { // a machine that is busy with something else may stand still for a moment
		t.Errorf("%d were told after seconds that the store did not answer", late.Load())
	}
	if len(joined) == 0 || cycles == 0 {
		t.Error("too few to mean anything")
	}
	t.eventually(t.recovery(), "exactly those who joined are in the queue", func() bool {
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

// leaversOfABurst has most callers of a burst go away while it is under way. Whoever was
// not told that he joined is not there.
func leaversOfABurst(t *trial) {
	var mu sync.Mutex
	joined := map[lock.ID]bool{}
	left := 0
	together(burstSize/2, func(i int) {
		ctx, leave := context.WithCancel(t.ctx)
		defer leave()
		if i%4 != 0 {
			timer := time.AfterFunc(time.Duration(i)*time.Millisecond/4, leave)
			defer timer.Stop()
		}
		draft := t.draft("hot")
		e, _, err := t.A.Enqueue(ctx, draft)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			joined[e.ID] = true
		case ctx.Err() != nil:
			left++
		case !errors.Is(err, lock.Overloaded):
			t.wantUnavailable("Enqueue in a burst", err)
		}
	})
	t.Logf("%d joined, %d went away before they were told", len(joined), left)
	if len(joined) == 0 {
		t.Error("too few to mean anything")
	}
	t.eventually(t.recovery(), "exactly those who joined are in the queue", func() bool {
		queue := t.queue(t.B, t.ref("hot"))
		return len(queue) == len(joined) && !slices.ContainsFunc(queue, func(e *lock.Entry) bool { return !joined[e.ID] })
	})
}

// large is how many of the largest entries are more than may be pending for one lock.
const large = 1200

// refusedOnArrival has more large entries join than may be pending, at a client that is
// cut off. Nobody who is refused has waited for that: it is decided long before a call that waits for
// the store is given up. And nothing of it is written.
func refusedOnArrival(t *trial) {
	if t.NoBound != "" {
		t.Logf("nobody is refused: %s", t.NoBound)
		return
	}
	names := make([]string, 32)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", strings.Repeat("n", 190), i)
	}
	restore := t.CutB(t.T, Silent)
	var refused, late atomic.Int64
	together(large, func(int) {
		draft := t.draft(names...)
		draft.Metadata = map[string]string{"text": strings.Repeat("m", 1900)}
		began := time.Now()
		_, _, err := t.B.Enqueue(t.ctx, draft)
		took := time.Since(began)
		var le *lock.Error
		if errors.As(err, &le) && le.Code == lock.Overloaded {
			if refused.Add(1); le.OutcomeUnknown || le.RetryAfter < time.Second {
				t.Errorf("a refusal says %+v", le)
			}
			if took > t.CallLimit*3/4 {
				late.Add(1)
			}
			return
		}
		t.wantUnavailable("Enqueue at a client that is cut off", err)
	})
	restore()
	t.Logf("%d were refused, %d of them late", refused.Load(), late.Load())
	if refused.Load() == 0 || late.Load() > 0 {
		t.Error("want refusals, all of them on arrival")
	}
	t.eventually(t.recovery(), "nothing is in the queue", func() bool { return len(t.queue(t.A, t.ref(names[0]))) == 0 })
}
