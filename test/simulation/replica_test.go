package simulation

import (
	"encoding/binary"
	"hash/fnv"
	"sync"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/memory"
)

// replica is one replica of the service, which can crash and start again.
type replica struct {
	w      *world
	n      int
	life   int
	svc    *service.Service
	store  *memory.Client
	wire   *wire
	calls  *sync.WaitGroup // that were not answered yet
	closed []chan struct{} // of each life that has ended: closed when all of it has

	down       bool // it takes no calls
	crashed    bool
	stillUntil time.Duration // when its messages go on
	lagUntil   time.Duration // when its feed is as fast as usual again
	offset     time.Duration // of its wall clock
}

func (r *replica) start() {
	if r.w.over {
		return
	}
	r.life++
	r.down, r.crashed = false, false
	r.calls = &sync.WaitGroup{}
	r.wire = &wire{w: r.w, r: r, dead: make(chan struct{})}
	r.store = r.w.server.Connect(r.wire)
	r.svc = service.New(service.Config{
		Store: r.store, TokenKey: []byte("a key behind the lock tokens, long enough"),
		MinTTL: 2 * time.Second, MaxHold: 20 * time.Second, Now: r.wall, Rand: chance{r},
	})
}

// crash ends the replica: none of its messages leaves it any more, and nobody hears
// its answers.
func (r *replica) crash() {
	r.down, r.crashed = true, true
	close(r.wire.dead)
	r.end()
}

// end closes what belongs to this life, in the background.
func (r *replica) end() {
	gone := make(chan struct{})
	r.closed = append(r.closed, gone)
	svc, store, calls := r.svc, r.store, r.calls
	go func() {
		defer close(gone)
		calls.Wait()
		svc.Close()
		store.Close()
	}()
}

// wall is the replica's wall clock.
func (r *replica) wall() time.Time { return time.Now().Round(0).Add(r.offset) }

// chance is a replica's randomness: a function of the instant, so that it does not
// matter which goroutine asks first.
type chance struct{ r *replica }

func (c chance) draw(salt uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, n := range []uint64{c.r.w.Seed, uint64(c.r.n), uint64(c.r.life), uint64(c.r.w.now()), salt} {
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// Int64N implements [service.Rand].
func (c chance) Int64N(n int64) int64 { return int64(c.draw(0) % uint64(n)) }

// Read implements [service.Rand].
func (c chance) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c.draw(uint64(i) + 1))
	}
	return len(p), nil
}
