package auth

import (
	"context"
	"slices"
	"sync"
	"time"
)

// validity says whether a credential still counts. It returns a context that ends when the answer
// may be another one, and nil if the credential was withdrawn.
type validity func() context.Context

// lasts has the credential end after so long.
func (p *Principal) lasts(d time.Duration) { p.ends = time.Now().Add(d) }

// Over returns why the credential that the principal was identified by does not count any more,
// [Withdrawn] or [Expired], or nil if it counts.
func (p *Principal) Over() error {
	switch {
	case !p.ends.IsZero() && time.Until(p.ends) <= 0:
		return Expired
	case p.validity != nil && p.validity() == nil:
		return Withdrawn
	}
	return nil
}

// While returns a context for work that takes no longer than atMost. It ends with ctx, and with the
// cause [Expired] when the credential of the principal does. It ends with the cause [Withdrawn] if
// the credential stops to count before: its key left the key set, or a file or an authority that
// vouched for it changed. stop ends the watch, but not the context.
func (p *Principal) While(
	ctx context.Context, atMost time.Duration,
) (while context.Context, stop func()) {
	left := time.Until(p.ends)
	expires := !p.ends.IsZero() && left <= atMost
	if p.validity == nil && !expires {
		return ctx, func() {}
	}
	while, cancel := context.WithCancelCause(ctx)
	w := &watch{validity: p.validity, withdrawn: func() { cancel(Withdrawn) }}
	if expires {
		w.expiry = time.AfterFunc(left, func() { cancel(Expired) })
	}
	if p.validity != nil {
		w.look()
	}
	return while, w.end
}

// watch follows one credential. It needs no goroutine while nothing changes.
type watch struct {
	validity  validity
	withdrawn func()
	expiry    *time.Timer // nil if the work ends before

	mu    sync.Mutex
	ended bool
	stop  func() bool
}

func (w *watch) look() {
	next := w.validity()
	if next == nil {
		w.withdrawn()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.stop = context.AfterFunc(next, w.look)
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.expiry != nil {
		w.expiry.Stop()
	}
	if w.stop != nil {
		w.stop()
	}
}

// covers reports whether p may do all that other may, under the same name.
func (p *Principal) covers(other *Principal) bool {
	return p.Tenant == other.Tenant && p.Subject == other.Subject &&
		!slices.ContainsFunc(other.Scopes, func(s Scope) bool { return !p.Allows(s) }) &&
		p.coversLocks(other.Locks)
}

// coversLocks reports whether p may use all locks that the patterns select; nil selects all.
func (p *Principal) coversLocks(patterns []Pattern) bool {
	if p.Locks == nil || patterns == nil {
		return p.Locks == nil
	}
	return !slices.ContainsFunc(patterns, func(of Pattern) bool { return !p.MayUseAll(of) })
}

// signal tells all who rely on something that it has changed. The zero value is ready.
type signal struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

// next returns a context that ends with the next change. Who needs it asks before reading what
// may change.
func (s *signal) next() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	return s.ctx
}

// change is called after what has changed can be read.
func (s *signal) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
		s.ctx, s.cancel = nil, nil
	}
}
