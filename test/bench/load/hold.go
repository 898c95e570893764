package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Hold takes n locks and keeps them. The workers share the work; their Release
// is of no use afterwards.
func Hold(ctx context.Context, workers []Worker, n int, name func(i int) string) error {
	var next atomic.Int64
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if _, err := workers[w].Acquire(ctx, name(i)); err != nil {
					errs[w] = fmt.Errorf("acquire %s: %w", name(i), err)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
