package row

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
	"github.com/fencepost/fencepost/test/rig"
)

func fetchZooKeeper(ctx context.Context) (java string, err error) {
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		return "", err
	}
	return rig.FetchZooKeeper(ctx, cache)
}

func fetchCurator(ctx context.Context) (java string, err error) {
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		return "", err
	}
	return rig.FetchCurator(ctx, cache)
}

func (b *bench) startZooKeeper(
	ctx context.Context,
	name string,
	cs *closers,
) (*rig.ZooKeeper, error) {
	java, err := fetchZooKeeper(ctx)
	if err != nil {
		return nil, err
	}
	z, err := rig.StartZooKeeper(
		ctx, rig.ZooKeeperConfig{Dir: filepath.Join(b.dir, name), Java: java, Optimized: true},
	)
	if err != nil {
		return nil, err
	}
	cs.add(z.Close)
	return z, nil
}

// zooFencepost starts ZooKeeper and the server for n clients.
func zooFencepost(n int, queue bool) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		s, err := b.serveOnZooKeeper(ctx, cs)
		if err != nil {
			return contender{}, err
		}
		if queue {
			s.load.WaitSeconds = queueSeconds
		}
		return s.contender(b, s.load.Workers(n), b.heated(queue, true)), nil
	}
}

// serveOnZooKeeper starts ZooKeeper, with authentication, and the server.
func (b *bench) serveOnZooKeeper(ctx context.Context, cs *closers) (*served, error) {
	z, err := b.startZooKeeper(ctx, "store", cs)
	if err != nil {
		return nil, err
	}
	login, err := b.zooKeeperLogin()
	if err != nil {
		return nil, err
	}
	s := &served{}
	if s.replica, err = b.startReplica(ctx, z.Store(), cs, login...); err != nil {
		return nil, err
	}
	s.pids = []int{z.Server(0).PID(), s.PID()}
	s.load, err = clients(s.replica, cs)
	return s, err
}

// zooKeeperLogin returns the flags with which a server authenticates itself.
func (b *bench) zooKeeperLogin() ([]string, error) {
	password := filepath.Join(b.dir, "password")
	if err := os.WriteFile(password, []byte(side.ZooKeeperPassword), 0o600); err != nil {
		return nil, err
	}
	return []string{"--store-username", side.ZooKeeperUser, "--store-password-file", password}, nil
}

// zkLocks starts ZooKeeper for n clients of go-zookeeper's lock.
func zkLocks(n int, queue bool) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		z, err := b.startZooKeeper(ctx, "peer", cs)
		if err != nil {
			return contender{}, err
		}
		locks, err := side.NewZKLocks(ctx, z.Endpoints(), n)
		cs.add(locks.Close)
		if err != nil {
			return contender{}, err
		}
		return contender{
			name: "go-zookeeper's lock", pids: []int{z.Server(0).PID()},
			workers: locks.Workers(), load: b.heated(queue, false),
		}, nil
	}
}

// curator starts ZooKeeper for n clients of Curator's InterProcessMutex.
func curator(n int, queue bool) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		z, err := b.startZooKeeper(ctx, "peer", cs)
		if err != nil {
			return contender{}, err
		}
		java, err := fetchCurator(ctx)
		if err != nil {
			return contender{}, err
		}
		c, err := side.StartCurator(ctx, b.dir, java, z.Endpoints(), n, queue)
		if err != nil {
			return contender{}, err
		}
		cs.add(c.Close)
		return contender{
			name: "Curator", pids: []int{z.Server(0).PID()}, clients: []int{c.PID()},
			load: func([]load.Worker) roundFunc {
				return func(_ context.Context, round int) (*load.Result, error) {
					return c.Round(round, b.warmupOf(round), b.Duration)
				}
			},
		}, nil
	}
}

// javaWarmup is how long Java compiles under load before its speed is steady.
const javaWarmup = 15 * time.Second

func (b *bench) warmupOf(round int) time.Duration {
	if round == 0 {
		return javaWarmup
	}
	return b.Warmup
}

// heated returns rounds that begin with javaWarmup.
func (b *bench) heated(queue, fifo bool) func([]load.Worker) roundFunc {
	return func(workers []load.Worker) roundFunc {
		return func(ctx context.Context, round int) (*load.Result, error) {
			b := *b
			b.Warmup = b.warmupOf(round)
			if queue {
				return b.contend(ctx, workers, round, fifo)
			}
			return b.uncontended(workers)(ctx, round)
		}
	}
}
