package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/client"
)

// session is what one agent holds and waits for.
type session struct {
	client *client.Client
	holder string // unique, so that the agent finds itself in a queue
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup

	mu     sync.Mutex
	claims map[string]*claim
}

// claim is a lock that the agent holds or waits for. Only the call that took it may use it.
type claim struct {
	busy    bool
	pending *pending
	held    *client.Held
}

func newSession(ctx context.Context, c *client.Client) *session {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	s := &session{
		client: c, holder: fmt.Sprintf("agent-%.100s-%s", host, rand.Text()[:8]),
		claims: map[string]*claim{},
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// take returns the claim of a lock, or a new one. The caller returns it with put.
func (s *session) take(name string) (*claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[name]
	switch {
	case s.ctx.Err() != nil:
		return nil, s.ctx.Err()
	case c == nil:
		c = &claim{}
		s.claims[name] = c
	case c.busy:
		return nil, fmt.Errorf("another call is about %s now: wait for its answer", name)
	}
	c.busy = true
	return c, nil
}

// isFull reports whether a new claim is one too many.
func (s *session) isFull(c *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.held == nil && c.pending == nil && len(s.claims) > maxLocks
}

func (s *session) put(name string, c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.busy = false; c.pending == nil && c.held == nil {
		delete(s.claims, name)
	}
}

// mine is what the session has of one lock.
type mine struct {
	Name  string  `json:"name"`
	State string  `json:"state" jsonschema:"held, waiting or lost"`
	Fence uint64  `json:"fence,omitempty"`
	Left  float64 `json:"seconds_left,omitempty" jsonschema:"until the lock is lost if no renewal succeeds"`
	Why   string  `json:"why,omitempty" jsonschema:"why it is lost"`
}

// own returns what the session has, by name. Claims that a call is changing wait.
func (s *session) own() []mine {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []mine{}
	for name, c := range s.claims {
		m := mine{Name: name, State: waiting}
		if !c.busy && c.held != nil {
			m.State, m.Fence, m.Left = held, c.held.Fence(), c.held.Left().Round(time.Second).Seconds()
			if err := c.held.Check(); err != nil {
				m.State, m.Left, m.Why = lost, 0, err.Error()
			}
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mine) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// fence returns that of a lock that the session holds, or 0.
func (s *session) fence(name string) uint64 {
	for _, m := range s.own() {
		if m.Name == name && m.State == held {
			return m.Fence
		}
	}
	return 0
}

// lost names the locks that the agent has lost and neither released nor acquired since.
func (s *session) lost() []string {
	var names []string
	for _, m := range s.own() {
		if m.State == lost {
			names = append(names, m.Name)
		}
	}
	return names
}

// end waits for the calls, and releases what the session has. The process ends next, so a release
// that takes longer than endTimeout is left to it.
func (s *session) end() {
	s.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.calls.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		var all sync.WaitGroup
		for _, c := range s.claims {
			all.Go(func() { c.leave(s.ctx) })
		}
		all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(endTimeout):
	}
}

// leave releases the lock, or leaves its queue, also if ctx has ended.
func (c *claim) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, _ = c.release(ctx) // what is not released expires
}
