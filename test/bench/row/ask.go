package row

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fencepost/fencepost/test/bench/side"
)

// askAll has clients ask for n locks, as fast as they are answered.
func askAll(
	ctx context.Context, clients []*side.Client, n int,
	name func(i int) string, body []byte, taken func(side.Ticket),
) error {
	var next atomic.Int64
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	for k, c := range clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[k] == nil; i = int(next.Add(1)) - 1 {
				var t side.Ticket
				if t, errs[k] = c.Ask(ctx, name(i), body); errs[k] == nil {
					taken(t)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
