package webhook

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// PoolConfig has the bounds of a [Pool]. Of what is 0, the default counts.
type PoolConfig struct {
	Workers   int // jobs at once, in all; 1,024
	PerTenant int // of one tenant; 64

	// Next counts a job of a tenant that is about to begin, or counts nothing and returns after how
	// long it may begin. Without it each may. It must not block.
	Next func(tenant string) (after time.Duration)
}

// Pool runs jobs of many tenants concurrently:
//
//   - At most PerTenant jobs of a tenant run at once, and Workers in all. Tenants take turns; a
//     tenant's jobs begin in the order of Submit.
//   - A tenant gets another worker only while eight times as many as it has are free. So more than
//     forty tenants whose receivers hang leave a worker for a tenant that has nothing running.
//   - A tenant begins no more jobs in a second than Next lets it.
//
// Its caller bounds how many jobs wait.
type Pool struct {
	config PoolConfig
	ctx    context.Context //nolint:containedctx // of the jobs: it ends when the pool is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	tenants map[string]*tenantJobs
	ready   []*tenantJobs // tenants with a job that may run, but for the free workers
	running int
	closed  bool
	all     sync.WaitGroup
}

type tenantJobs struct {
	name    string
	waiting []func(context.Context)
	running int
	inLine  bool // or paused
}

// NewPool returns a pool that has to be closed.
func NewPool(c PoolConfig) *Pool {
	c.Workers, c.PerTenant = cmp.Or(c.Workers, 1024), cmp.Or(c.PerTenant, 64)
	if c.Next == nil {
		c.Next = func(string) time.Duration { return 0 }
	}
	p := &Pool{config: c, tenants: map[string]*tenantJobs{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Submit has a tenant's job run as soon as it may, and does not wait for that. The job has to
// return soon after its context ends, which it does when the pool is closed. A closed pool drops
// the job.
func (p *Pool) Submit(tenant string, run func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	t := p.tenants[tenant]
	if t == nil {
		t = &tenantJobs{name: tenant}
		p.tenants[tenant] = t
	}
	t.waiting = append(t.waiting, run)
	p.line(t)
	p.dispatch()
}

// Close drops what waits, ends the contexts of what runs, and returns when nothing runs any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed, p.ready, p.tenants = true, nil, nil
	p.mu.Unlock()
	p.cancel()
	p.all.Wait()
}

// line puts a tenant into the line if a job of it may run, and drops one that has none.
func (p *Pool) line(t *tenantJobs) {
	switch {
	case t.inLine:
	case len(t.waiting) > 0 && t.running < p.config.PerTenant:
		t.inLine = true
		p.ready = append(p.ready, t)
	case len(t.waiting) == 0 && t.running == 0:
		delete(p.tenants, t.name)
	}
}

// share times what a tenant has must be free for it to get more. With 8 and 1,024 workers it takes
// 48 tenants at whose receivers everything hangs to take all workers. With 1 it took 22.
const share = 8

// dispatch starts jobs until there is no free worker, or no tenant that may get one.
func (p *Pool) dispatch() {
	for skipped := 0; skipped < len(p.ready) && p.running < p.config.Workers; {
		t := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		if share*t.running >= p.config.Workers-p.running {
			p.ready = append(p.ready, t)
			skipped++
			continue
		}
		skipped = 0
		if after := p.config.Next(t.name); after > 0 {
			p.pause(t, after)
		} else {
			p.start(t)
		}
	}
}

// The bounds of one pause of a tenant that has begun as many jobs as it may: others' requests wait
// for jobs that begin together, and Next may allow more meanwhile.
const shortPause, longPause = time.Millisecond, time.Second

// pause leaves a tenant out of the line for a while.
func (p *Pool) pause(t *tenantJobs, d time.Duration) {
	time.AfterFunc(min(max(d, shortPause), longPause), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		p.ready = append(p.ready, t)
		p.dispatch()
	})
}

// start runs the next job of a tenant that has just left the line.
func (p *Pool) start(t *tenantJobs) {
	run := t.waiting[0]
	t.waiting[0] = nil
	t.waiting = t.waiting[1:]
	t.inLine = false
	t.running++
	p.running++
	p.line(t)
	p.all.Go(func() {
		run(p.ctx)
		p.finish(t)
	})
}

// finish gives the worker of a job that has ended to the next one.
func (p *Pool) finish(t *tenantJobs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.running--
	p.running--
	if p.closed {
		return
	}
	p.line(t)
	p.dispatch()
}
