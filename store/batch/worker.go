package batch

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// allowed returns the bound on workers. The caller holds mu.
func (c *Committer[P, O]) allowed() int {
	usual := c.limits.InFlight
	if c.limits.Inline {
		usual = 1
	}
	if c.pending.blocked > 0 && c.underWay < usual*c.limits.Ops {
		return c.limits.Most
	}
	return usual
}

// reserve counts one more worker if there is work for it. The caller holds mu.
func (c *Committer[P, O]) reserve() bool {
	if c.closed || !c.pending.urgent() || c.running >= c.allowed() {
		return false
	}
	c.running++
	c.workers.Add(1)
	return true
}

func (c *Committer[P, O]) start() {
	if c.reserve() {
		go c.work()
	}
}

// lead sends one batch in the goroutine of one of its writes. A worker sends what has arrived
// meanwhile.
func (c *Committer[P, O]) lead() {
	c.round()
	if c.proceed() {
		go c.work()
	}
}

// work sends batches while there are any.
func (c *Committer[P, O]) work() {
	for c.round(); c.proceed(); {
		c.round()
	}
}

// proceed reports whether a worker continues; otherwise it no longer counts.
func (c *Committer[P, O]) proceed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.pending.urgent() && c.running <= c.allowed() {
		return true
	}
	c.running--
	c.workers.Done()
	return false
}

// round sends one batch, and then what must be sent again.
func (c *Committer[P, O]) round() {
	if c.ready != nil && !c.ready() {
		return
	}
	taken := c.take()
	defer c.ended(taken)
	for parts := [][]*Write[P, O]{taken}; len(parts) > 0; {
		part := c.wanted(parts[0])
		parts = parts[1:]
		if len(part) > 0 {
			parts = append(c.commit(part), parts...)
		}
	}
}

// take takes the next batch, and starts another worker for writes that cannot share it.
func (c *Committer[P, O]) take() []*Write[P, O] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.pending.urgent() {
		return nil
	}
	taken, now := c.pending.take(), time.Now()
	for _, w := range taken {
		w.taken, w.waited = now, max(0, c.wrote.Sub(w.arrived))
		c.underWay += w.Ops
	}
	c.start()
	return taken
}

// ended counts a batch as no longer under way.
func (c *Committer[P, O]) ended(taken []*Write[P, O]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range taken {
		c.underWay -= w.Ops
	}
}

// wanted leaves out the writes of a batch that must not be sent any more.
func (c *Committer[P, O]) wanted(writes []*Write[P, O]) []*Write[P, O] {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	wanted := writes[:0:0]
	for _, w := range writes {
		if w.retried = false; closed || w.Abandoned() {
			w.notSent()
			continue
		}
		wanted = append(wanted, w)
	}
	return wanted
}

// errForgotten is a bug of a send function. The write may have run.
var errForgotten = errors.New("bug: the send function settled no outcome of a write")

// commit sends a batch, and returns the writes to send again.
func (c *Committer[P, O]) commit(writes []*Write[P, O]) (again [][]*Write[P, O]) {
	sent := c.sending(writes)
	again = c.send(writes)
	sent()
	for _, part := range again {
		for _, w := range part {
			w.retried = true
		}
	}
	var none O
	worked := false
	for _, w := range writes {
		if !w.retried && !w.settled() {
			w.Settle(none, errForgotten)
		}
		worked = worked || !w.retried && w.err == nil
	}
	if worked {
		c.mu.Lock()
		c.wrote = time.Now()
		c.mu.Unlock()
	}
	return again
}

// sending reports the sampled requests of a batch before it is sent.
func (c *Committer[P, O]) sending(writes []*Write[P, O]) (sent func()) {
	var requests []trace.SpanContext
	for _, w := range writes {
		if w.request.IsSampled() {
			requests = append(requests, w.request)
		}
	}
	if len(requests) == 0 {
		return func() {}
	}
	return c.Sending(requests)
}
