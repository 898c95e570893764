package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/api"
)

// Held is a lock, or a set of locks, that this process holds. It is renewed in the background until
// Release, or until it is lost. Its methods may be called by many goroutines at once.
//
// The lock counts as lost one margin before its lease can end: the lease counts from when the last
// successful request was sent. Work that heeds [Held.Context] has stopped by then. A process can
// stop between any check and a write, so the resource that is written has to compare the fence.
type Held struct {
	client  *Client
	of      target
	entry   entry
	options Options

	ctx    context.Context // of the work
	cancel context.CancelCauseFunc
	life   context.Context // of renewals, which the end of the work's context does not end
	stop   context.CancelFunc

	granted time.Duration // by the monotonic clock

	mu      sync.Mutex
	since   reading // when the last successful request was sent
	err     error   // why it is not held any more
	renewal *time.Timer
	expiry  *time.Timer
	rest    *time.Timer          // releases it; nil unless the work has ended before AtLeast
	renews  bool                 // a renewal is under way
	failed  error                // of the last renewal, if it failed
	asked   api.ReleaseRequested // that was reported last
}

// hold begins to renew a grant whose lease counts from since.
func (c *Client) hold(
	ctx context.Context, of target, e *entry, options Options, since reading,
) (*Held, error) {
	now := c.config.clock()
	h := &Held{
		client: c, of: of, entry: *e, options: options, since: since, granted: now.monotonic,
	}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.life, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.mu.Lock()
	h.renewal = time.AfterFunc(h.renewIn(now), h.renew)
	h.expiry = time.AfterFunc(h.untilDeadline(now), h.look)
	h.mu.Unlock()
	if !c.keep(h) {
		h.end(&LostError{Name: of.name, Reason: ReasonClosed})
		return nil, cancelled(errClosed)
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	return h, nil
}

// String names the lock and its fence. Without it, fmt would print the token.
func (h *Held) String() string { return fmt.Sprintf("%s (fence %d)", h.Name(), h.Fence()) }

// GoString is String: %#v would print the token, too.
func (h *Held) GoString() string { return h.String() }

// ID of the entry, as lists and events have it.
func (h *Held) ID() string { return h.entry.ID }

// Token returns the secret that renews and releases the lock, for a process that takes it over by
// [Client.Adopt]. Keep it out of logs and arguments of commands.
func (h *Held) Token() string { return h.entry.Token }

// Name of the lock; the names of a set, as far as they are held, with commas in between.
func (h *Held) Name() string {
	if h.of.any > 0 {
		return strings.Join(slices.Sorted(maps.Keys(h.Fences())), ",")
	}
	return h.of.name
}

// Fence of the grant, to be compared by the resource that is written: it grows from each grant of a
// lock to the next. All locks of a set have the same.
func (h *Held) Fence() uint64 {
	if len(h.entry.Locks) > 0 {
		return h.entry.Locks[0].Fence
	}
	return h.entry.Fence
}

// Fences returns the fence of each lock of a set, by name.
func (h *Held) Fences() map[string]uint64 {
	fences := map[string]uint64{}
	for _, lock := range h.entry.Locks {
		fences[lock.Name] = lock.Fence
	}
	return fences
}

// Context is for the work under the lock. It ends one margin before the lease can end, at the
// latest, when the lock is released, and with the context of the acquire. [context.Cause] is the
// [LostError] if the lock was lost.
func (h *Held) Context() context.Context { return h.ctx }

// Check returns nil while the lock is held, and otherwise why not: a [LostError], or that it was
// released. It looks at the clocks, so it also knows what the context is about to learn after the
// process or the machine was stopped. It asks no server.
func (h *Held) Check() error {
	h.overdue()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rest != nil {
		return errReleased
	}
	return h.err
}

// Release gives the lock back, and ends the context of the work. It tries until the deadline of the
// lock and no longer. If it fails, it logs and returns why, and the lock expires with its TTL. If
// the lock was lost before, it sends nothing and returns the [LostError]. A second call does
// nothing.
//
// ctx bounds how long Release waits: when it ends, the code is [Cancelled], and the release
// continues in the background. [Client.Close] waits for that. Before [Options.AtLeast] has passed,
// Release returns at once.
func (h *Held) Release(ctx context.Context) error {
	h.overdue()
	if h.rests() {
		return nil
	}
	return h.giveBack(ctx)
}

// rests ends the work, but not the lock, if AtLeast has not passed since the grant. It reports
// whether that is so, now or at an earlier call.
func (h *Held) rests() bool {
	now := h.client.config.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.options.AtLeast - (now.monotonic - h.granted)
	if h.rest == nil && h.err == nil && left > 0 {
		h.rest = time.AfterFunc(left, func() {
			_ = h.giveBack(context.Background()) // logged
		})
		h.cancel(errReleased)
	}
	return h.rest != nil
}

// giveBack releases the lock, unless it has ended.
func (h *Held) giveBack(ctx context.Context) error {
	if !h.client.begin() {
		h.end(&LostError{Name: h.Name(), Reason: ReasonClosed})
	} else if h.end(errReleased) {
		done := make(chan error, 1)
		go func() {
			defer h.client.tasks.Done()
			done <- h.release(context.WithoutCancel(ctx))
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return cancelled(context.Cause(ctx))
		}
	} else {
		h.client.tasks.Done()
	}
	if err := h.Check(); !errors.Is(err, errReleased) {
		return err
	}
	return nil
}

// release sends the release until a server answers it.
func (h *Held) release(ctx context.Context) error {
	c := h.client
	ctx, stop := until(ctx, c.leaving)
	defer stop()
	err := c.attempts(ctx, limit{h.Left, true}, func(ctx context.Context, base string) error {
		_, err := c.try(ctx, base, release(h.of, &h.entry))
		return err
	})
	if err == nil || CodeOf(err) == api.Lost {
		return nil
	}
	h.client.config.Logger.Warn("a lock could not be released and expires",
		"lock", h.Name(), "fence", h.Fence(), "error", err)
	return err
}

// ttl is that of the last answer. The caller holds mu.
func (h *Held) ttl() time.Duration { return h.entry.TTLSeconds.Duration() }

// Left returns the time until the deadline, by which the work has to stop. A renewal moves it. Give
// it to a step that takes a timeout.
func (h *Held) Left() time.Duration {
	now := h.client.config.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.untilDeadline(now)
}

// untilDeadline is Left. The caller holds mu.
func (h *Held) untilDeadline(now reading) time.Duration {
	return h.ttl() - h.options.margin(h.ttl()) - now.since(h.since)
}

// renewIn is the time until the next renewal: a third of the TTL after the last one was sent, and
// up to a tenth of that sooner or later, so that many locks do not renew at once. The caller holds
// mu.
func (h *Held) renewIn(now reading) time.Duration {
	third := h.ttl() / 3
	return third - third/10 + rand.N(max(third/5, 1)) - now.since(h.since)
}

// overdue ends the lock if its deadline has come.
func (h *Held) overdue() bool {
	if h.Left() > 0 {
		return false
	}
	now := h.client.config.clock()
	h.mu.Lock()
	lost := &LostError{
		Name: h.Name(), Reason: ReasonDeadline, unrenewed: now.since(h.since), cause: h.failed,
	}
	h.mu.Unlock()
	h.end(lost)
	return true
}

// look ends the lock if its deadline has come. Otherwise it sets the timers, which stand still
// while the machine is suspended.
func (h *Held) look() {
	if h.overdue() {
		return
	}
	now := h.client.config.clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	h.expiry.Reset(h.untilDeadline(now))
	if !h.renews {
		h.renewal.Reset(max(h.renewIn(now), 0))
	}
}

// end ends the lock for a reason. It reports false if it had ended before.
func (h *Held) end(why error) bool {
	h.mu.Lock()
	if h.err != nil {
		h.mu.Unlock()
		return false
	}
	h.err = why
	h.renewal.Stop()
	h.expiry.Stop()
	rests := h.rest != nil
	if rests {
		h.rest.Stop()
	}
	h.mu.Unlock()
	h.cancel(why)
	h.stop()
	h.client.drop(h)
	if !rests && !errors.Is(why, errReleased) {
		h.client.config.Logger.Warn("a lock is lost",
			"lock", h.Name(), "fence", h.Fence(), "error", why)
	}
	return true
}

// renew renews the lock until one request succeeds, or the deadline has come, which ends it.
func (h *Held) renew() {
	if !h.client.begin() {
		return
	}
	defer h.client.tasks.Done()
	h.mu.Lock()
	over := h.err != nil || h.renews
	h.renews = true
	h.mu.Unlock()
	if over {
		return
	}
	var sent reading
	var e *entry
	err := h.client.attempts(
		h.life, limit{h.Left, true}, func(ctx context.Context, base string) (err error) {
			sent = h.client.config.clock()
			e, _, err = h.client.tryEntry(ctx, base, renewal(h.of, &h.entry))
			h.mu.Lock()
			h.failed = err
			h.mu.Unlock()
			return untilLost(err)
		},
	)
	var problem *Error
	switch {
	case err == nil:
		h.renewed(sent, e)
	case errors.As(err, &problem) && problem.Code == api.Lost:
		h.end(lostOf(h.Name(), problem))
	}
}

// untilLost makes each failure of a renewal but 410 one to try again after. A bearer token that is
// refused now may be replaced before the deadline.
func untilLost(err error) error {
	if err == nil || CodeOf(err) == api.Lost || isAgain(err) {
		return err
	}
	return &again{error: err}
}

// renewed moves the deadline, unless it has come while the answer was on its way.
func (h *Held) renewed(sent reading, e *entry) {
	if h.overdue() {
		return
	}
	h.mu.Lock()
	h.since, h.entry.TTLSeconds, h.renews = sent, e.TTLSeconds, false
	before, asked := h.asked, e.ReleaseRequested
	if h.asked = (api.ReleaseRequested{}); asked != nil {
		h.asked = *asked
	}
	report := h.err == nil && h.rest == nil && asked != nil &&
		(asked.Since != before.Since || asked.By != before.By)
	h.mu.Unlock()
	h.look()
	if report && h.options.OnReleaseRequested != nil {
		go h.options.OnReleaseRequested(*asked) // it may block, and close the client
	}
}

// renewal may take a third of the TTL, if that is known.
func renewal(of target, e *entry) *request {
	return &request{
		method: http.MethodPut, path: of.heldPath(e.ID) + "/renew", token: e.Token,
		timeout: min(requestTimeout, cmp.Or(e.TTLSeconds.Duration()/3, requestTimeout)),
	}
}

func release(of target, e *entry) *request {
	return &request{
		method: http.MethodDelete, path: of.heldPath(e.ID), token: e.Token, timeout: requestTimeout,
	}
}
