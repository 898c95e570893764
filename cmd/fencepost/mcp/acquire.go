package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

const acquireText = `Acquire a named lock and wait for it. Agree on the name with the others who
share the thing: repo:website, browser, env:staging.

"state" of the answer is:
- held: the lock is yours until you release it. "fence" is a number that grows with every grant.
  Give it to what you write to (a header, a column, a commit message): a resource that rejects a
  smaller fence than it has seen is safe from a writer that lost the lock and does not know yet.
- waiting: others are in front. "position" 1 is next. Call acquire again to keep waiting; you
  keep your position. If you do not call again within a minute of the grant, the next in line gets
  the lock. If you do not want it any more, call release.
- busy: wait_seconds was 0 and the lock is held. You are not in the queue.

The lock is renewed while this session lives. It can be lost all the same: the server was not
reachable, an operator revoked it, the machine slept. Every answer lists such locks under "lost".
A lost lock must stop the work: another may hold it already.`

type acquireInput struct {
	Name    string `json:"name" jsonschema:"letters, digits and . _ : @ = + -, at most 200"`
	Wait    *int   `json:"wait_seconds,omitempty" jsonschema:"0 to 50; 30 by default"`
	Purpose string `json:"purpose,omitempty" jsonschema:"what you need the lock for; others see it"`
	Mode    string `json:"mode,omitempty" jsonschema:"exclusive (default), shared or semaphore"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many permits a semaphore has"`
	Permits int    `json:"permits,omitempty" jsonschema:"how many of them to take; 1 by default"`
}

type acquired struct {
	Name     string       `json:"name"`
	State    string       `json:"state" jsonschema:"held, waiting or busy"`
	Fence    uint64       `json:"fence,omitempty"`
	Position int          `json:"position,omitempty" jsonschema:"1 is next"`
	Waiting  int          `json:"waiting,omitempty" jsonschema:"how many wait in all"`
	Holders  []api.Holder `json:"holders,omitempty"`
	Lost     []string     `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

// waitOf checks how long a call may wait.
func waitOf(seconds *int, otherwise time.Duration) (time.Duration, error) {
	if seconds == nil {
		return otherwise, nil
	}
	wait := time.Duration(*seconds) * time.Second
	if *seconds < 0 || wait > maxWait {
		return 0, fmt.Errorf("wait_seconds is 0 to %.0f", maxWait.Seconds())
	}
	return wait, nil
}

func (in *acquireInput) options(holder string) client.Options {
	o := client.Options{
		TTL: ttl, Wait: queueFor, Holder: holder, Mode: in.Mode, Limit: in.Limit, Permits: in.Permits,
	}
	if in.Purpose != "" {
		o.Metadata = map[string]string{"purpose": in.Purpose}
	}
	return o
}

func (s *session) acquire(ctx context.Context, in acquireInput) (*acquired, error) {
	wait, err := waitOf(in.Wait, defaultWait)
	if err != nil {
		return nil, err
	}
	e, err := s.take(in.Name)
	if err != nil {
		return nil, err
	}
	defer s.put(in.Name, e)
	state, err := s.attempt(ctx, e, &in, wait)
	switch {
	case err != nil:
		return nil, err
	case state == held:
		return &acquired{Name: in.Name, State: held, Fence: e.held.Fence(), Lost: s.lost()}, nil
	}
	return s.behind(in.Name, state)
}

// attempt makes one attempt to hold the lock, and returns its state.
func (s *session) attempt(
	ctx context.Context, e *entry, in *acquireInput, wait time.Duration,
) (state string, err error) {
	switch {
	case s.isFull(e):
		return "", fmt.Errorf("this session has %d locks, the most it may: release one first", maxLocks)
	case e.held != nil:
		if err := e.held.Check(); err != nil {
			e.held = nil
			return "", fmt.Errorf("stop the work that needs it, then you may acquire again: %w", err)
		}
		return held, nil
	case e.pending == nil && wait == 0:
		e.held, err = s.client.TryLock(ctx, in.Name, in.options(s.holder))
		if client.CodeOf(err) == api.Held {
			return busy, nil
		}
		return e.unlessCancelled(ctx, err)
	case e.pending == nil:
		if e.pending, err = s.queue(ctx, in); err != nil {
			return "", err
		}
	}
	return e.await(ctx, max(wait, time.Second))
}

// await waits for the grant. If wait ends first, the entry keeps its position. If the call
// is cancelled, it leaves the queue.
func (e *entry) await(ctx context.Context, wait time.Duration) (string, error) {
	select {
	case e.held = <-e.pending.granted:
		e.pending = nil
	case <-e.pending.over:
		err := e.pending.err
		e.pending = nil
		return "", err
	case <-time.After(wait):
		return waiting, nil
	case <-ctx.Done():
	}
	return e.unlessCancelled(ctx, nil)
}

// unlessCancelled releases the lock if the call was cancelled: the agent gets no answer, and the
// session would renew the lock until its end.
func (e *entry) unlessCancelled(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		e.leave(ctx)
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	return held, nil
}

// behind names the entries in front of the session.
func (s *session) behind(name, state string) (*acquired, error) {
	ctx, cancel := context.WithTimeout(s.ctx, lookTimeout)
	defer cancel()
	look, err := s.client.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	a := &acquired{
		Name: name, State: state, Waiting: look.Waiting, Holders: firstOf(look.Holders), Lost: s.lost(),
	}
	for _, w := range look.Waiters {
		if w.Holder == s.holder {
			a.Position = w.Position
		}
	}
	return a, nil
}
