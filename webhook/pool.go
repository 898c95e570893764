package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Bound is how many jobs may wait or run, and how many bytes they may keep. Of 0, the
// default counts.
type Bound struct {
	Jobs, Bytes int
}

// PoolConfig has the bounds of a [Pool]. Of what is 0, the default counts.
type PoolConfig struct {
	Workers   int // jobs at once, in all; 1,024
	PerTenant int // of one tenant; 64
	PerTarget int // of one target; 4

	Target Bound // of one target's jobs; 1,000 and 1 MiB
	Tenant Bound // of one tenant's; 20,000 and 32 MiB
	All    Bound // 200,000 and 256 MiB

	// Next counts a job of a tenant that is about to begin, or counts nothing and returns after how long it may;
	// without it each may. It must not block.
	Next func(tenant string) (after time.Duration)
}

func (c PoolConfig) withDefaults() PoolConfig {
	for value, standard := range map[*int]int{
		&c.Workers: 1_024, &c.PerTenant: 64, &c.PerTarget: 4,
		&c.Target.Jobs: 1_000, &c.Target.Bytes: 1 << 20,
		&c.Tenant.Jobs: 20_000, &c.Tenant.Bytes: 32 << 20,
		&c.All.Jobs: 200_000, &c.All.Bytes: 256 << 20,
	} {
		if *value == 0 {
			*value = standard
		}
	}
	if c.Next == nil {
		c.Next = func(string) time.Duration { return 0 }
	}
	return c
}

// Job is one thing to do for a target: an attempt.
type Job struct {
	Tenant string
	Target string // unique for its tenant: a subscription's id

	// Order names what has an order among the jobs of a target: a lock. Jobs with the
	// same one run one after another as they were submitted, those with others beside
	// them. If all have the empty one, the whole target is in order.
	Order string

	// Bytes is how much memory is kept because of the job.
	Bytes int

	// Run does it. It has to return soon after its context ends, which it does when
	// the pool is closed.
	Run func(ctx context.Context)

	// Void reports that Run would attempt nothing any more, so that Next need not count it;
	// nil never does. It must not block.
	Void func() bool
}

// Pool runs jobs of many targets side by side, so that none that is slow delays another:
//
//   - Jobs of one target and one [Job.Order] run one at a time, in the order in which
//     Submit was called. Nothing is promised of the order of others.
//   - At most PerTarget jobs of a target run at once, PerTenant of a tenant, Workers in
//     all. Tenants take turns, so do the targets of a tenant, and the orders of a target.
//   - A tenant is given another worker only while eight times as many as it has are free.
//     So it takes receivers that hang of more than forty tenants before one that has
//     nothing running has to wait, for one attempt of these to end; and the targets of one
//     tenant delay each other only once so many of its jobs hang.
//   - A tenant begins no more jobs in a second than Next lets it, besides those that are void.
//   - What waits and runs is bounded, in number and bytes, for a target, a tenant and in
//     all, where a tenant has no more than is free. What does not fit is refused.
type Pool struct {
	config PoolConfig
	ctx    context.Context //nolint:containedctx // of the jobs: it ends when the pool is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	tenants map[string]*tenantJobs
	ready   line[*tenantJobs] // who has a job that may run, but for the free workers
	load    Bound             // of all jobs
	running int
	closed  bool
	idle    chan struct{} // closed when the pool is and nothing runs
}

// NewPool returns a pool that has to be closed.
func NewPool(c PoolConfig) *Pool {
	p := &Pool{config: c.withDefaults(), tenants: make(map[string]*tenantJobs), idle: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Submit has a job run as soon as it may, and does not wait for that. It returns
// [lock.Overloaded] if there are too many already, and [lock.Draining] after Close.
func (p *Pool) Submit(j Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return lock.Errorf(lock.Draining, "no more deliveries are made here")
	}
	if fault := p.full(j); fault != "" {
		return &lock.Error{Code: lock.Overloaded, Detail: fault, RetryAfter: time.Second}
	}
	p.enqueue(j)
	p.dispatch()
	return nil
}

// full says why there is no room for the job.
func (p *Pool) full(j Job) string {
	var tenant, target Bound
	if t := p.tenants[j.Tenant]; t != nil {
		tenant = t.load
		if g := t.targets[j.Target]; g != nil {
			target = g.load
		}
	}
	free := Bound{p.config.All.Jobs - p.load.Jobs, p.config.All.Bytes - p.load.Bytes}
	switch {
	case !target.fits(j.Bytes, p.config.Target):
		return "too many deliveries to this receiver are waiting"
	case !tenant.fits(j.Bytes, p.config.Tenant):
		return "too many deliveries of this tenant are waiting"
	case !tenant.fits(j.Bytes, free):
		return "too many deliveries are waiting"
	}
	return ""
}

// Close ends the pool: what waits is dropped, and what runs may go on until ctx ends; then
// its contexts end too. It returns when nothing runs any more.
func (p *Pool) Close(ctx context.Context) {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.ready = line[*tenantJobs]{}
		p.tenants = nil
		p.closeIdle()
	}
	p.mu.Unlock()
	select {
	case <-p.idle:
	case <-ctx.Done():
	}
	p.cancel()
	<-p.idle
}

func (p *Pool) closeIdle() {
	if p.closed && p.running == 0 {
		close(p.idle)
	}
}

// fits reports whether one more job, of so many bytes, is within the bound.
func (b Bound) fits(bytes int, bound Bound) bool {
	return b.Jobs+1 <= bound.Jobs && b.Bytes+bytes <= bound.Bytes
}

func (b *Bound) add(jobs, bytes int) {
	b.Jobs += jobs
	b.Bytes += bytes
}
