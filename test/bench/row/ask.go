package row

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// askAll has clients ask for n locks, as fast as they are answered, and returns how often one
// was refused and asked again.
func askAll(ctx context.Context, clients []*side.Client, n int, name func(i int) string, body []byte, taken func(side.Ticket)) (again int, err error) {
	var next, refused atomic.Int64
	ask := func(c *side.Client) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			t, _, times, err := c.Ask(ctx, name(i), body)
			refused.Add(int64(times))
			if err != nil {
				return err
			}
			taken(t)
		}
	}
	errs := make(chan error, len(clients))
	for _, c := range clients {
		go func() { errs <- ask(c) }()
	}
	for range clients {
		err = errors.Join(err, <-errs)
	}
	return int(refused.Load()), err
}

// heat has the load of uncontended rows run for as long as Java compiles, if the store is
// ZooKeeper; what it finds does not count.
func (b *bench) heat(ctx context.Context, workers []load.Worker) error {
	if !b.Store.zooKeeper {
		return nil
	}
	warm := *b
	warm.Warmup = javaWarmup
	_, err := warm.uncontended(workers)(ctx, b.Rounds)
	return err
}
