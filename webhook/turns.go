package webhook

import "time"

// What a pool has to do, as three levels that each take turns: tenants, the targets of a
// tenant, the orders of a target. Each stands in the line of the level above while a job of
// it may run. The pool's mutex guards all of it.
type (
	tenantJobs struct {
		name    string
		targets map[string]*targetJobs
		ready   line[*targetJobs]
		load    Bound
		running int
		inLine  bool // or paused
	}

	targetJobs struct {
		name    string
		orders  map[string]*orderJobs
		ready   line[*orderJobs]
		load    Bound
		running int
		inLine  bool
	}

	// orderJobs is in its target's line while none of its jobs runs.
	orderJobs struct {
		name string
		jobs line[Job]
	}

	// place is where a job belongs.
	place struct {
		tenant *tenantJobs
		target *targetJobs
		order  *orderJobs
	}
)

// line is first in, first out.
type line[T any] struct{ waiting []T }

func (l *line[T]) empty() bool { return len(l.waiting) == 0 }
func (l *line[T]) push(v T)    { l.waiting = append(l.waiting, v) }

func (l *line[T]) pop() T {
	var none T
	v := l.waiting[0]
	l.waiting[0] = none // which is not to be kept in memory
	l.waiting = l.waiting[1:]
	return v
}

// enqueue puts the job at the end of its order, which is made if there is none.
func (p *Pool) enqueue(j Job) {
	at := p.place(j)
	fresh := at.order == nil
	if fresh {
		at.order = &orderJobs{name: j.Order}
		at.target.orders[j.Order] = at.order
	}
	at.order.jobs.push(j)
	p.account(at, 1, j.Bytes)
	if fresh {
		at.target.ready.push(at.order)
		p.line(at)
	}
}

// place finds or makes where the job belongs, but for its order.
func (p *Pool) place(j Job) place {
	t := p.tenants[j.Tenant]
	if t == nil {
		t = &tenantJobs{name: j.Tenant, targets: make(map[string]*targetJobs)}
		p.tenants[j.Tenant] = t
	}
	g := t.targets[j.Target]
	if g == nil {
		g = &targetJobs{name: j.Target, orders: make(map[string]*orderJobs)}
		t.targets[j.Target] = g
	}
	return place{t, g, g.orders[j.Order]}
}

func (p *Pool) account(at place, jobs, bytes int) {
	at.target.load.add(jobs, bytes)
	at.tenant.load.add(jobs, bytes)
	p.load.add(jobs, bytes)
}

// line puts the target and the tenant into their lines if they belong there and are not.
func (p *Pool) line(at place) {
	t, g := at.tenant, at.target
	if !g.inLine && !g.ready.empty() && g.running < p.config.PerTarget {
		g.inLine = true
		t.ready.push(g)
	}
	if !t.inLine && !t.ready.empty() && t.running < p.config.PerTenant {
		t.inLine = true
		p.ready.push(t)
	}
}

// share is how many times what a tenant has must be free for it to be given more. With 8
// and 1,024 workers it takes 48 tenants at whose receivers everything hangs to take all
// workers, if they come one after the other and each takes what it can. With 1 it took 22.
const share = 8

// dispatch starts jobs until there is no worker, or nobody to give one to. The bound on
// skipped ends it when all in the line have their share.
func (p *Pool) dispatch() {
	for skipped := 0; skipped < len(p.ready.waiting) && p.running < p.config.Workers; {
		t := p.ready.pop()
		if free := p.config.Workers - p.running; share*t.running >= free {
			p.ready.push(t)
			skipped++
			continue
		}
		if after := p.mayBegin(t); after > 0 {
			p.pause(t, after)
		} else {
			t.inLine = false
			p.start(t)
		}
		skipped = 0
	}
}

// mayBegin counts the next job of a tenant that is in the line, or returns after how long it may begin. What attempts
// nothing any more takes no turn from what would: there may be thousands behind a receiver that wants a pause.
func (p *Pool) mayBegin(t *tenantJobs) (after time.Duration) {
	o := t.ready.waiting[0].ready.waiting[0]
	if void := o.jobs.waiting[0].Void; void != nil && void() {
		return 0
	}
	return p.config.Next(t.name)
}

// A tenant that has begun as many jobs as it may is paused for so long at least, and at most, as it may be let begin more
// meanwhile. Ten that begin together, as after 10 ms of a thousand a second, keep others' requests waiting for 5 ms.
const shortPause, longPause = time.Millisecond, time.Second

// pause leaves a tenant out of the line for a while.
func (p *Pool) pause(t *tenantJobs, d time.Duration) {
	time.AfterFunc(min(max(d, shortPause), longPause), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		p.ready.push(t)
		p.dispatch()
	})
}

// start runs the next job of a tenant that has just left the line.
func (p *Pool) start(t *tenantJobs) {
	g := t.ready.pop()
	g.inLine = false
	o := g.ready.pop()
	j, at := o.jobs.pop(), place{t, g, o}
	p.run(at, 1)
	p.line(at)
	go func() {
		j.Run(p.ctx)
		p.finish(at, j)
	}()
}

func (p *Pool) run(at place, jobs int) {
	at.target.running += jobs
	at.tenant.running += jobs
	p.running += jobs
}

// finish gives the worker of a job that has ended to the next one.
func (p *Pool) finish(at place, j Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run(at, -1)
	p.account(at, -1, -j.Bytes)
	if p.closed {
		p.closeIdle()
		return
	}
	if at.order.jobs.empty() {
		delete(at.target.orders, at.order.name)
	} else {
		at.target.ready.push(at.order)
	}
	p.forget(at)
	p.line(at)
	p.dispatch()
}

// forget drops what has nothing left to do.
func (p *Pool) forget(at place) {
	if at.target.load.Jobs == 0 {
		delete(at.tenant.targets, at.target.name)
	}
	if at.tenant.load.Jobs == 0 {
		delete(p.tenants, at.tenant.name)
	}
}
