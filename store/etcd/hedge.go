package etcd

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store/engine"
)

// What must precede a second write is hedged. If there is no answer within hedgeAfter, the store
// asks again, usually another member, up to mostHedges times. Otherwise one slow member would use
// up the call's time.
const (
	hedgeAfter = 300 * time.Millisecond
	mostHedges = 4
)

// hedged returns the first answer, which may be that a key is used up, or the last error if all
// fail. ask must allow concurrent calls, and end with its context.
func hedged[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers, asked, answered := make(chan answer, mostHedges), 0, 0
	begin := func() {
		asked++
		asking.Go(func() {
			value, err := ask(ctx)
			answers <- answer{value, err}
		})
	}
	begin()
	again := time.NewTicker(hedgeAfter)
	defer again.Stop()
	for {
		select {
		case a := <-answers:
			if answered++; a.err == nil || engine.UsedUp(a.err) != nil || answered == asked {
				return a.value, a.err
			}
		case <-again.C:
			if asked < mostHedges {
				begin()
			}
		}
	}
}
