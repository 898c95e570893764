package simulation

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// replica is one replica of the service, which can crash and start again.
type replica struct {
	w       *world
	n       int
	life    int
	svc     *service.Service
	store   *memory.Client
	wire    *wire
	calls   *sync.WaitGroup // that were not answered yet
	living  context.Context // for its followers, until it ends
	unwatch context.CancelFunc
	unread  func()          // ends its book of closures
	unsend  func()          // ends its outbox, and waits for that
	closed  []chan struct{} // of each life that has ended: closed when all of it has

	down       bool // it takes no calls
	crashed    bool
	stillUntil time.Duration // when its messages go on
	stoodUntil time.Duration // the same, of the last time that it stood still
	muteUntil  time.Duration // when its renewals of shards' locks get through again
	lagUntil   time.Duration // when its feed is as fast as usual again
	offset     atomic.Int64  // of its wall clock, in nanoseconds
}

func (r *replica) start() {
	if r.w.over {
		return
	}
	r.life++
	r.down, r.crashed = false, false
	r.calls = &sync.WaitGroup{}
	r.wire = &wire{
		w: r.w, r: r, life: r.life, dead: make(chan struct{}), numbered: -1,
		sent: map[ordered]lock.EventID{},
	}
	if !r.w.missing {
		r.wire.numbered, r.wire.since = r.w.numbered, r.w.now()
	}
	r.store = r.w.server.Connect(r.wire)
	name := r.name()
	cfg := service.Config{
		Store: watched{r.store, r.wire}, TokenKey: []byte("a key behind the lock tokens, long enough"),
		MinTTL: 2 * time.Second, MaxHold: 20 * time.Second, Now: r.wall, Rand: chance{r, r.life},
		Sharing: r.w.list.member(name),
	}
	r.unread = func() {}
	if r.w.Closures > 0 {
		cfg.Closures = r.readClosures()
	}
	r.svc = service.New(cfg)
	r.w.schedule(r.w.between(0, time.Second), func() { r.w.list.add(name) })
	r.watchEvents()
	r.sendWebhooks()
}

// name is the replica's in the list of replicas, another one in each life.
func (r *replica) name() string { return fmt.Sprint("replica-", r.n, "-", r.life) }

// crash ends the replica: it sends no more messages, and no client gets its answers.
func (r *replica) crash() {
	r.down, r.crashed = true, true
	close(r.wire.dead)
	r.end()
}

// end closes what belongs to this life, in the background.
func (r *replica) end() {
	r.unwatch()
	gone := make(chan struct{})
	r.closed = append(r.closed, gone)
	name := r.name()
	r.w.schedule(
		r.w.between(0, store.RecordLife+store.RecordLifeLate), func() { r.w.list.remove(name) },
	)
	svc, client, calls, unread, unsend := r.svc, r.store, r.calls, r.unread, r.unsend
	go func() {
		defer close(gone)
		unsend()
		unread()
		calls.Wait()
		svc.Close()
		client.Close()
	}()
}

// wall is the replica's wall clock.
func (r *replica) wall() time.Time {
	return time.Now().Round(0).Add(time.Duration(r.offset.Load()))
}

// chance is a replica's randomness: a function of the instant, so that it does not
// matter which goroutine asks first.
type chance struct {
	r    *replica
	life int
}

func (c chance) draw(salt uint64) uint64 {
	x := c.r.w.Seed
	for _, n := range [...]uint64{uint64(c.r.n), uint64(c.life), uint64(c.r.w.now()), salt} {
		x = mixed(x ^ n)
	}
	return x
}

// mixed is the last step of splitmix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Int64N implements [service.Rand].
func (c chance) Int64N(n int64) int64 { return int64(c.draw(0) % uint64(n)) }

// Read implements [service.Rand].
func (c chance) Read(p []byte) (int, error) {
	var some [8]byte
	for i := 0; i < len(p); i += len(some) {
		binary.LittleEndian.PutUint64(some[:], c.draw(uint64(i)+1))
		copy(p[i:], some[:])
	}
	return len(p), nil
}
