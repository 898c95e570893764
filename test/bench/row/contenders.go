package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
	"github.com/fencepost/fencepost/test/rig"
)

// starter starts one side of a comparison.
type starter func(context.Context, *bench, *closers) (contender, error)

const (
	// embedded, as a number of members, stands for the store inside the server.
	embedded = 0
	// queueing is how many clients want one lock in the contended rows.
	queueing = 32
	// queueSeconds is how long they wait for it at most: far above what a fair
	// queue needs, and below what the server holds a request open.
	queueSeconds = 45
	// namesPerWorker is how many locks a client of an uncontended row goes
	// through before it comes back to its first one.
	namesPerWorker = 64
)

// fencepost starts the server for n clients that take locks of their own.
func fencepost(members, n int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		s, err := b.serve(ctx, members, cs)
		if err != nil {
			return contender{}, err
		}
		return s.contender(b, s.load.Workers(n), b.uncontended), nil
	}
}

// fencepostQueue starts the server for clients that queue for one lock.
func fencepostQueue(members int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		s, err := b.serve(ctx, members, cs)
		if err != nil {
			return contender{}, err
		}
		s.load.WaitSeconds = queueSeconds
		return s.contender(b, s.load.Workers(queueing), b.contended(true)), nil
	}
}

// served is a running server, with its store, under load.
type served struct {
	*replica
	load  side.Fencepost
	store string // its address; "" is the embedded one
	pids  []int  // of the server and the store
}

// serve starts the server, and so many members of a store for it.
func (b *bench) serve(
	ctx context.Context,
	members int,
	cs *closers,
	args ...string,
) (*served, error) {
	s := &served{}
	if members > embedded {
		etcd, err := b.startEtcd(ctx, "store", members, cs)
		if err != nil {
			return nil, err
		}
		s.store, s.pids = etcd.Store(), etcd.pids()
	}
	var err error
	if s.replica, err = b.startReplica(ctx, s.store, cs, args...); err != nil {
		return nil, err
	}
	s.pids = append(s.pids, s.PID())
	s.load, err = clients(s.replica, cs)
	return s, err
}

// contender returns the server as a side, whose rounds have what all of Fencepost have.
func (s *served) contender(
	b *bench, workers []load.Worker, of func([]load.Worker) roundFunc,
) contender {
	watched := func(workers []load.Worker) roundFunc { return s.logged(s.profiled(b, of(workers))) }
	return contender{name: "Fencepost", pids: s.pids, workers: workers, load: watched}
}

// logged fails a round in which the server did not write its access log.
func (s *served) logged(run roundFunc) roundFunc {
	const leastLine = 60 // bytes of a line, below what any log of a request has
	return func(ctx context.Context, round int) (*load.Result, error) {
		before, err := os.Stat(s.Log())
		if err != nil {
			return nil, err
		}
		r, err := run(ctx, round)
		if err != nil {
			return nil, err
		}
		after, err := os.Stat(s.Log())
		if err == nil && after.Size()-before.Size() < 2*leastLine*r.Cycles {
			err = fmt.Errorf(
				"the log grew by %d bytes during %d cycles: is the access log off?", after.Size()-before.Size(),
				r.Cycles,
			)
		}
		return r, err
	}
}

// v3lock starts etcd for n clients of its HTTP gateway.
func v3lock(members, n int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		etcd, err := b.startEtcd(ctx, "peer", members, cs)
		if err != nil {
			return contender{}, err
		}
		workers, err := etcd.v3lock(n, cs)
		return contender{name: "v3lock", pids: etcd.pids(), workers: workers, load: b.uncontended}, err
	}
}

// mutex starts etcd for n clients with one session for all of them.
func mutex(members, n int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		etcd, err := b.startEtcd(ctx, "peer", members, cs)
		if err != nil {
			return contender{}, err
		}
		workers, err := etcd.mutex(n, 1, cs)
		return contender{
			name: "concurrency.Mutex", pids: etcd.pids(), workers: workers, load: b.uncontended,
		}, err
	}
}

// mutexQueue starts etcd for clients that queue for one mutex, each with its
// own session: a mutex cannot tell two clients of one session apart.
func mutexQueue(members int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		etcd, err := b.startEtcd(ctx, "peer", members, cs)
		if err != nil {
			return contender{}, err
		}
		workers, err := etcd.mutex(queueing, queueing, cs)
		return contender{
			name: "concurrency.Mutex", pids: etcd.pids(), workers: workers, load: b.contended(false),
		}, err
	}
}

// redis starts Redis for n clients that take locks of their own.
func redis(n int) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		return b.serveRedis(ctx, n, cs)
	}
}

// redisQueue starts Redis for clients that want one lock.
func redisQueue(ctx context.Context, b *bench, cs *closers) (contender, error) {
	c, err := b.serveRedis(ctx, queueing, cs)
	c.load = b.contended(false)
	return c, err
}

func (b *bench) serveRedis(ctx context.Context, n int, cs *closers) (contender, error) {
	r, err := rig.StartRedis(ctx, filepath.Join(b.dir, "peer"))
	if err != nil {
		return contender{}, err
	}
	cs.add(r.Close)
	workers, err := side.NewRedisWorkers(ctx, connections(cs), r.Address(), n)
	return contender{
		name: "Redis " + r.Version, note: "The peer is Redis " + r.Version + ".",
		pids: []int{r.PID()}, workers: workers, load: b.uncontended,
	}, err
}

// roundFunc makes one round of load; rounds count from 0.
type roundFunc func(ctx context.Context, round int) (*load.Result, error)

// uncontended returns rounds in which every worker takes locks of its own.
// Names differ from round to round, so that no round works on the history of
// the one before.
func (b *bench) uncontended(workers []load.Worker) roundFunc {
	return func(ctx context.Context, round int) (*load.Result, error) {
		names := make([]string, len(workers)*namesPerWorker)
		for i := range names {
			names[i] = fmt.Sprintf("bench:%d:%d:%d", round, i/namesPerWorker, i%namesPerWorker)
		}
		return load.Closed{
			Workers: workers, Warmup: b.Warmup, Duration: b.Duration,
			Name: func(worker, cycle int) string {
				return names[worker*namesPerWorker+cycle%namesPerWorker]
			},
		}.Run(ctx)
	}
}

// contended returns rounds in which all workers want one lock. Every round
// checks that no two of them had it at once, and, where the fence is the place
// in the queue, that the queue was first in, first out.
func (b *bench) contended(fifo bool) func([]load.Worker) roundFunc {
	return func(workers []load.Worker) roundFunc {
		return func(ctx context.Context, round int) (*load.Result, error) {
			return b.contend(ctx, workers, round, fifo)
		}
	}
}

func (b *bench) contend(
	ctx context.Context, workers []load.Worker, round int, fifo bool,
) (*load.Result, error) {
	name := fmt.Sprintf("bench:%d", round)
	r, err := load.Closed{
		Workers: workers, Warmup: b.Warmup, Duration: b.Duration, Record: true,
		Name: func(int, int) string { return name },
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	h := r.History.Handovers(b.Warmup)
	b.logf("         hand-overs: mean %v p50 %v p99 %v", h.Mean(), h.Percentile(50), h.Percentile(99))
	if err := r.History.CheckExclusion(); err != nil || !fifo {
		return r, err
	}
	return r, errors.Join(r.History.CheckFences(), r.History.CheckFair(onTheWay(r)))
}

// onTheWay is how long a request may take to its place in the queue, for the
// check of the order from outside. Under load a request can be late by more than
// the queue takes to go round, so that a few rounds are allowed; a lock that
// picks its next holder at random makes many wait far longer. The exact check of
// the order is that of the fences, which are the places.
func onTheWay(r *load.Result) time.Duration {
	return max(100*time.Millisecond, 5*r.Acquire.Percentile(50))
}
