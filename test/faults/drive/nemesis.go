package drive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/rig"
)

// Nemesis kills members of the store and replicas of the server like kill -9,
// and starts them again, one at a time: a majority of the store and one replica
// always live.
type Nemesis struct {
	Cluster  Cluster
	Replicas []*rig.Replica
	Every    time.Duration // between two kills; each is down for about a third of it
	Stops    bool          // also freeze the leader and members, for as long

	mu     sync.Mutex
	killed Killed
}

// Killed returns what was killed so far.
func (n *Nemesis) Killed() Killed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.killed
}

// Killed counts the faults that happened: the process was seen to end, or was stopped.
type Killed struct {
	Members, Leaders, Replicas int
	Stopped                    int // members, leaders among them, that were frozen
}

func (k Killed) String() string {
	s := fmt.Sprintf("killed: %d members, %d leaders, %d replicas", k.Members, k.Leaders, k.Replicas)
	if k.Stopped > 0 {
		s += fmt.Sprintf("; stopped: %d members", k.Stopped)
	}
	return s
}

// Run goes round the faults until ctx ends and leaves everything running.
func (n *Nemesis) Run(ctx context.Context) error {
	turns := []func(context.Context) error{n.killLeader, n.killReplica, n.killMember, n.killReplica}
	if n.Stops {
		turns = []func(context.Context) error{
			n.stopLeader, n.killLeader, n.killReplica, n.stopMember, n.killMember,
		}
	}
	for i := 0; ; i++ {
		if store.Pause(ctx, n.Every*2/3) != nil {
			return nil
		}
		// Repairs run even if time is up.
		repair, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err := turns[i%len(turns)](repair)
		cancel()
		if err != nil {
			return fmt.Errorf("nemesis: %w", err)
		}
	}
}

// victim is a member or a replica.
type victim interface {
	Kill() error
	Restart(ctx context.Context) error
}

func (n *Nemesis) strike(ctx context.Context, v victim, count *int) error {
	if err := v.Kill(); err != nil {
		return err
	}
	n.mu.Lock()
	*count++
	n.mu.Unlock()
	if store.Pause(ctx, n.Every/3) != nil {
		return errors.Join(ctx.Err(), v.Restart(ctx))
	}
	return v.Restart(ctx)
}

func (n *Nemesis) killLeader(ctx context.Context) error {
	leader, err := n.Cluster.Leader(ctx)
	if err != nil {
		return err
	}
	return n.strike(ctx, n.Cluster.Member(leader), &n.killed.Leaders)
}

func (n *Nemesis) killMember(ctx context.Context) error {
	return n.strike(ctx, n.Cluster.Member(rand.IntN(n.Cluster.Size())), &n.killed.Members)
}

func (n *Nemesis) killReplica(ctx context.Context) error {
	return n.strike(ctx, n.Replicas[n.Killed().Replicas%len(n.Replicas)], &n.killed.Replicas)
}

func (n *Nemesis) stopLeader(ctx context.Context) error {
	leader, err := n.Cluster.Leader(ctx)
	if err != nil {
		return err
	}
	return n.freeze(ctx, n.Cluster.Member(leader))
}

func (n *Nemesis) stopMember(ctx context.Context) error {
	return n.freeze(ctx, n.Cluster.Member(rand.IntN(n.Cluster.Size())))
}

func (n *Nemesis) freeze(ctx context.Context, m Member) error {
	if err := m.Stop(); err != nil {
		return err
	}
	n.mu.Lock()
	n.killed.Stopped++
	n.mu.Unlock()
	_ = store.Pause(ctx, n.Every/3)
	return m.Continue()
}
