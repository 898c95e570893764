package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// base is what every part of a [Service] uses: the configuration and the view of the store.
type base struct {
	Config
	tokens  tokens
	view    *view.View
	figures *figures.Figures
	tasks   sync.WaitGroup  // Close waits for them
	closing context.Context // ends when the service closes
}

// span starts a span. If no span is recorded, it returns the context as it is.
func (b *base) span(ctx context.Context, name string) (context.Context, trace.Span) {
	if b.untraced() {
		return ctx, noop.Span{}
	}
	return b.Tracer.Start(ctx, name)
}

// outdated returns an error if the store holds records that only a newer version understands.
// This replica then decides nothing about waiting entries, because it may misread which entry is
// in front. A client that has its token can still renew and release.
func (b *base) outdated() error {
	if err := b.Store.Refusal(); errors.Is(err, store.ErrNewerForm) {
		return err
	}
	return nil
}

// settle waits for the view if the caller wants it current. A stale view reports its number; a
// view that never was would report every lock as free.
func (b *base) settle(ctx context.Context, consistent bool) error {
	if !consistent {
		return b.view.Progress.Missing()
	}
	return b.awaitNewest(ctx, 2*time.Second)
}

// settled waits up to FeedTimeout and reports whether the view has every write before the call.
func (b *base) settled(ctx context.Context) bool {
	return b.awaitNewest(ctx, b.FeedTimeout) == nil
}

// awaitNewest waits until the view has every write before the call. The timeout bounds the
// wait for the view.
func (b *base) awaitNewest(ctx context.Context, timeout time.Duration) error {
	number, err := b.Store.Newest(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return b.view.Progress.Await(ctx, number)
}

// catchUp briefly waits for the view to reach the number of a token.
func (b *base) catchUp(ctx context.Context, id lock.ID, number uint64) view.Status {
	ctx, cancel := context.WithTimeout(ctx, b.FeedTimeout)
	defer cancel()
	if err := b.view.Progress.Await(ctx, number); err != nil {
		return view.Status{}
	}
	return b.view.Status(id, number)
}

// whyLost adds the reason to an error that says that the store no longer has the
// entry.
func (b *base) whyLost(ctx context.Context, e *lock.Entry, err error) error {
	if !errors.Is(err, lock.Lost) {
		return err
	}
	b.awaitRemoval(ctx, e)
	return b.lostBecause(ctx, e.ID, e.Number)
}

// lostBecause returns why the entry is gone, as far as that is known. Right after a list, the
// reasons from before are still being read; lostBecause waits for them briefly.
func (b *base) lostBecause(ctx context.Context, id lock.ID, number uint64) error {
	st := b.view.Status(id, number)
	if st.State == view.Gone && st.Reason == lock.Unknown {
		ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
		defer cancel()
		b.view.Reasons.AwaitReasons(ctx)
		st = b.view.Status(id, number)
	}
	if st.State == view.Gone {
		return b.ended(id, st.Reason)
	}
	return lock.LostBecause(lock.Unknown)
}

// awaitRemoval briefly waits for the view to see that the entry is gone, and why.
func (b *base) awaitRemoval(ctx context.Context, e *lock.Entry) {
	watch := b.view.Waits.Watch(e.ID)
	defer watch.End()
	ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
	defer cancel()
	for b.view.Status(e.ID, e.Number).State != view.Gone {
		select {
		case <-watch.Changed:
		case <-ctx.Done():
			return
		}
	}
}

// ended returns the error for an entry that is gone.
func (b *base) ended(id lock.ID, why lock.Reason) error {
	err := lock.LostBecause(why)
	if why == lock.Revoked {
		err.RevokeReason = b.view.Reasons.RevokeReason(id)
	}
	return err
}

// mayGrant reports whether a request may answer that the entry holds.
func (b *base) mayGrant(st view.Status) bool { return !st.Doubt || b.Store.Refusal() == nil }

// admit returns why an entry may not join: an operator has closed one of its locks, or this
// replica has not read the closures yet. Otherwise it notes in e by which closures that was
// decided, with which the write is compared. A choosing entry leaves out closed locks, if enough
// others are left.
func (b *base) admit(e *lock.Entry) error {
	if e.Tenant == lock.OwnTenant || b.Config.Closures == nil {
		return nil
	}
	if !b.Config.Closures.Read() {
		return closures.ErrUnread()
	}
	for {
		c, version := b.Config.Closures.Closed(e.Tenant, e.Claims)
		if c == nil {
			e.Admitted = version
			return nil
		}
		if !e.LeaveOut(func(claim lock.Claim) bool { return c.Locks.Match(claim.Name) }) {
			return lock.ErrClosed(c, b.Now())
		}
	}
}

func (b *base) closed(tenant string, claims []lock.Claim) *lock.Closure {
	if b.Config.Closures == nil {
		return nil
	}
	c, _ := b.Config.Closures.Closed(tenant, claims)
	return c
}

// spread returns a random duration from d to 2d.
func (b *base) spread(d time.Duration) time.Duration {
	return d + time.Duration(b.Rand.Int64N(int64(d)))
}

// wall converts an instant of the process's monotonic clock to the wall clock.
func (b *base) wall(at time.Time) time.Time { return b.Now().Add(time.Until(at)) }

// Closures are the closures that this replica knows.
type Closures interface {
	// Closed returns the closure that keeps an entry with these claims from joining, or nil, and the
	// version of the tenant's closures.
	Closed(tenant string, claims []lock.Claim) (c *lock.Closure, version uint64)

	// Reread reads the closures of a tenant, no older than the call, unless their version is another
	// one by now.
	Reread(ctx context.Context, tenant string, version uint64) error

	// Read reports whether the closures were read.
	Read() bool
}
