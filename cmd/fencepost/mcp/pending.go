package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/client"
)

var errNotCollected = errors.New(
	"the lock was granted, but passed on because no acquire collected it within a minute",
)

// pending is an entry in a queue. A goroutine of the session waits on it between the calls of the
// agent, so that it expires if the process is killed.
type pending struct {
	entry   *client.Pending
	stop    context.CancelFunc
	granted chan *client.Held // to the call that collects it
	over    chan struct{}     // closed when the entry waits no longer
	err     error             // why it ended without a grant; written before over
}

// queue joins the queue of a lock.
func (s *session) queue(ctx context.Context, in *acquireInput) (*pending, error) {
	entry, err := s.client.Queue(ctx, in.Name, in.options(s.holder))
	if err != nil {
		return nil, err
	}
	p := &pending{entry: entry, granted: make(chan *client.Held), over: make(chan struct{})}
	ctx, p.stop = context.WithCancel(s.ctx)
	go func() {
		defer close(p.over)
		p.err = p.run(ctx)
	}()
	return p, nil
}

// run waits for the grant until ctx ends, and then leaves the queue.
func (p *pending) run(ctx context.Context) error {
	got, err := p.entry.Wait(ctx)
	switch {
	case err == nil:
		return p.offer(got)
	case ctx.Err() == nil:
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return p.entry.Leave(ctx)
}

// offer releases a grant that no call collects in time.
func (p *pending) offer(got *client.Held) error {
	var late error
	select {
	case p.granted <- got:
		return nil
	case <-got.Context().Done():
	case <-time.After(ttl):
		late = errNotCollected
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(got.Context()), endTimeout)
	defer cancel()
	return errors.Join(late, got.Release(ctx))
}

// leave leaves the queue, or releases a grant that was not collected.
func (p *pending) leave() error {
	p.stop()
	<-p.over
	return p.err
}
