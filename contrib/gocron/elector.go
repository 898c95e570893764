package gocron

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencepost/fencepost/client"
)

// Elector is one candidate for a lock. The candidate that holds it runs all jobs.
type Elector struct {
	client  *client.Client
	name    string
	options client.Options

	campaign sync.Mutex
	held     atomic.Pointer[client.Held]
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns a candidate, for one scheduler. It campaigns when a job is due. Options.Wait
// has no effect.
func NewElector(c *client.Client, name string, options client.Options) *Elector {
	return &Elector{client: c, name: name, options: options}
}

// Held returns the lock, or nil if this candidate never led. Its context ends with the term.
func (e *Elector) Held() *client.Held { return e.held.Load() }

// IsLeader returns nil if this candidate leads. If the lock is free, it acquires it, and the client
// renews it until Resign, whatever job asked.
func (e *Elector) IsLeader(ctx context.Context) error {
	e.campaign.Lock()
	defer e.campaign.Unlock()
	if held := e.held.Load(); held != nil && held.Check() == nil {
		return nil
	}
	term, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unless := context.AfterFunc(ctx, cancel)
	held, err := e.client.TryLock(term, e.name, e.options)
	if err != nil {
		cancel()
		return err
	}
	if !unless() {
		_ = held.Release(context.WithoutCancel(ctx)) // logged
		return context.Cause(ctx)
	}
	e.held.Store(held)
	return nil
}

// Resign releases the lock, so that another candidate leads soon. Stop the scheduler before.
func (e *Elector) Resign(ctx context.Context) error {
	e.campaign.Lock()
	defer e.campaign.Unlock()
	if held := e.held.Load(); held != nil {
		return held.Release(ctx)
	}
	return nil
}
