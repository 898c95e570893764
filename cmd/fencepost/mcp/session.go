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
	"github.com/fencepost/fencepost/cmd/fencepost/claims"
)

// session is what one agent holds and waits for.
type session struct {
	client *client.Client
	holder string // unique, so that the agent finds itself in a queue
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup
	files  *claims.Session // shared with hooks and commands

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is a lock that the agent holds or waits for. Only the call that took it may use it.
type entry struct {
	busy    bool
	pending *pending
	held    *client.Held
}

func newSession(ctx context.Context, c *client.Client, files *claims.Session) *session {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	s := &session{
		client: c, holder: fmt.Sprintf("agent-%.100s-%s", host, rand.Text()[:8]),
		entries: map[string]*entry{}, files: files,
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.calls.Go(s.renewClaims)
	return s
}

// take returns the entry of a lock, or a new one. The caller returns it with put.
func (s *session) take(name string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	switch {
	case s.ctx.Err() != nil:
		return nil, s.ctx.Err()
	case e == nil:
		e = &entry{}
		s.entries[name] = e
	case e.busy:
		return nil, fmt.Errorf("another call is about %s now: wait for its answer", name)
	}
	e.busy = true
	return e, nil
}

// isFull reports whether a new entry is one too many.
func (s *session) isFull(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.held == nil && e.pending == nil && len(s.entries) > maxLocks
}

func (s *session) put(name string, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.busy = false; e.pending == nil && e.held == nil {
		delete(s.entries, name)
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

// own returns what the session has, by name. Entries that a call is changing wait.
func (s *session) own() []mine {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []mine{}
	for name, e := range s.entries {
		m := mine{Name: name, State: waiting}
		if !e.busy && e.held != nil {
			m.State, m.Fence, m.Left = held, e.held.Fence(), e.held.Left().Round(time.Second).Seconds()
			if err := e.held.Check(); err != nil {
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
		for _, e := range s.entries {
			all.Go(func() { e.leave(s.ctx) })
		}
		all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(endTimeout):
	}
}

// leave releases the lock, or leaves its queue, also if ctx has ended.
func (e *entry) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, _ = e.release(ctx) // what is not released expires
}
