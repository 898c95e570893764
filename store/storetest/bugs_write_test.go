package storetest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
)

// numberBugs are about the numbers that entries get.
func numberBugs() []bug {
	fromBase := func(c *client, _, placed *lock.Entry, _ *bool) { placed.Number -= c.base.Load() }
	setBase := func(b *broken) { b.base.Store(b.server.Number()) }
	return []bug{
		{
			does: "numbers start over when a client opens", caught: "fence/grows over a reopening",
			reopened: setBase, answered: fromBase,
		},
		{
			does: "numbers start over when history is forgotten", caught: "fence/grows over a compaction",
			compacted: setBase, answered: fromBase,
		},
		{
			does: "two entries of a burst share a number", caught: "order/thousands on one lock",
			seen: func(e *lock.Entry) {
				if e.Number%7 == 4 {
					e.Number--
				}
			},
		},
		{
			does: "numbers start over when a queue was empty", caught: "fence/grows from holder to holder",
			answered: func(c *client, _, placed *lock.Entry, _ *bool) {
				if c.there(sameQueue(placed)).ID == placed.ID {
					placed.Number = 1
				}
			},
		},
		{
			does: "numbers do not fit a double", caught: "enqueue/returns the entry with its number",
			number: 1 << 53,
		},
		{
			does: "a later entry gets a smaller number", caught: "order/many locks and sets",
			seen: func(e *lock.Entry) { e.Number += 99 - 2*(e.Number%100) },
		},
	}
}

// sameQueue wants entries that stand in e's first queue.
func sameQueue(e *lock.Entry) func(*lock.Entry) bool {
	return func(o *lock.Entry) bool { return o.Tenant == e.Tenant && claims(o, e.Name(), 0) }
}

// retryBugs are about writing an entry again.
func retryBugs() []bug {
	return []bug{
		{
			does: "a retry gets a new number", caught: "enqueue/a retry joins its first attempt",
			answered: func(c *client, _, placed *lock.Entry, written *bool) {
				if ctx := context.Background(); !*written && c.sound.Remove(ctx, placed, lock.Withdrawn) == nil {
					again, _, _ := c.sound.Enqueue(ctx, placed)
					*placed = *again
				}
			},
		},
		{
			does: "a retry changes the entry", caught: "enqueue/a retry joins its first attempt",
			answered: func(c *client, e, placed *lock.Entry, written *bool) {
				copied := c.server.Checkpoint()
				for i := range copied.Entries {
					if known := &copied.Entries[i]; !*written && known.ID == placed.ID {
						known.Holder, placed.Holder = e.Holder, e.Holder
						c.server.Restore(copied)
					}
				}
			},
		},
		{
			does: "a retry says that it wrote the entry", caught: "enqueue/written tells who wrote",
			answered: func(_ *client, _, _ *lock.Entry, written *bool) { *written = true },
		},
		{
			does: "a retry that races writes a second entry", caught: "enqueue/one id through two clients at once",
			stored: func(c *client, e *lock.Entry) {
				if c.byID(e) != nil {
					return
				}
				if pause(time.Millisecond); c.byID(e) != nil { // the window between looking and writing
					e.ID = lock.ID(rand.Text())
				}
			},
		},
		{
			does: "a retry of a set writes it again", caught: "sets/a retry joins its first attempt",
			stored: func(c *client, e *lock.Entry) {
				if e.Set && c.byID(e) != nil {
					e.ID = lock.ID(rand.Text())
				}
			},
		},
		{
			does: "an id finds another tenant's entry", caught: "tenants/one id in two tenants",
			stored: func(c *client, e *lock.Entry) {
				if other := c.there(func(o *lock.Entry) bool { return o.ID == e.ID && o.Name() == e.Name() }); other != nil {
					e.Tenant = other.Tenant
				}
			},
		},
	}
}

// keyBugs are about keys, which are used once.
func keyBugs() []bug {
	return []bug{
		{
			does: "a used-up key is written again", caught: "enqueue/a used-up key is refused with its reason",
			stored: func(c *client, _ *lock.Entry) { c.server.Forget() },
		},
		{
			does: "whether a key is used up is looked at before its entry is looked for", caught: "enqueue/late duplicates of a key find it used up",
			stored: func(c *client, e *lock.Entry) {
				used := c.ended(e) != ""
				if pause(time.Millisecond); !used {
					c.server.Forget()
				}
			},
		},
		{
			does: "an expiry leaves its key free", caught: "enqueue/the key of an entry that expired is used up",
			stored: func(c *client, e *lock.Entry) {
				if c.ended(e) == lock.Expired {
					c.server.Forget()
				}
			},
		},
		{
			does: "a withdrawal uses its key up", caught: "enqueue/the key of a withdrawn entry is free",
			remove: func(ctx context.Context, c *client, r removal) error {
				if r.why == lock.Withdrawn {
					r.why = lock.Released
				}
				return c.sound.Remove(ctx, r.Entry, r.why, r.while...)
			},
		},
		{
			does: "a withdrawn entry leaves nothing that an earlier attempt would find", caught: "cut/silent/a try that comes late finds its key withdrawn",
			remove: func(ctx context.Context, c *client, r removal) error {
				err := c.sound.Remove(ctx, r.Entry, r.why, r.while...)
				c.server.Forget()
				return err
			},
		},
		{
			does: "a key counts for the locks of its entry only", caught: "enqueue/a key is one entry whatever its locks are",
			stored: func(c *client, e *lock.Entry) {
				if known := c.byID(e); known != nil && known.Name() != e.Name() {
					e.ID = lock.ID(rand.Text())
				}
			},
		},
	}
}

// contentBugs are about what is stored of an entry.
func contentBugs() []bug {
	return []bug{
		{
			does: "metadata is not stored", caught: "enqueue/every field survives",
			stored: func(_ *client, e *lock.Entry) { e.Metadata = nil },
		},
		{
			does: "a large set loses locks", caught: "sets/the largest that is allowed",
			stored: func(_ *client, e *lock.Entry) { e.Claims = e.Claims[:min(len(e.Claims), 16)] },
		},
		{
			does: "half of a set is written or removed when the answer is lost", caught: "cut/deaf/sets are written whole or not at all",
			stored: func(c *client, e *lock.Entry) {
				if e.Set && c.second && c.deaf.Load() {
					e.Claims = e.Claims[:1]
				}
			},
			remove: func(ctx context.Context, c *client, r removal) error {
				if r.Set && c.second && c.deaf.Load() {
					c.haunt(r.Entry, time.Hour)
				}
				return c.sound.Remove(ctx, r.Entry, r.why, r.while...)
			},
			queue: haunted,
		},
		{
			does: "readers are stored as writers", caught: "modes/readers together, a writer between them",
			stored: claiming(func(_ *lock.Entry, c *lock.Claim) {
				if c.Mode == lock.Shared {
					c.Mode = lock.Exclusive
				}
			}),
		},
		{
			does: "the limit of a semaphore is not stored", caught: "modes/a semaphore lets in so many",
			stored: claiming(func(_ *lock.Entry, c *lock.Claim) { c.Limit = min(c.Limit, 1) }),
		},
		{
			does: "all locks of a set are stored as exclusive", caught: "modes/mixed in a set",
			stored: claiming(func(e *lock.Entry, c *lock.Claim) {
				if e.Set {
					c.Mode, c.Limit = lock.Exclusive, 0
				}
			}),
		},
	}
}

// claiming changes the claims that are stored.
func claiming(change func(*lock.Entry, *lock.Claim)) func(*client, *lock.Entry) {
	return func(_ *client, e *lock.Entry) {
		for i := range e.Claims {
			change(e, &e.Claims[i])
		}
	}
}

// callBugs are about the outcome of calls.
func callBugs() []bug {
	return []bug{
		{
			does: "a context that has ended is ignored", caught: "contexts/one that has ended does nothing",
			call: func(ctx context.Context, do func(context.Context) error) error { return do(context.WithoutCancel(ctx)) },
		},
		{
			does: "a call whose context ended says that it did nothing, and does it", caught: "contexts/one that ends meanwhile hurts nobody else",
			call: func(ctx context.Context, do func(context.Context) error) error {
				pause(time.Millisecond) // so that contexts end meanwhile
				if err := do(context.WithoutCancel(ctx)); err != nil || ctx.Err() == nil {
					return err
				}
				return unavailable()
			},
		},
		{
			does: "a call that did nothing is ambiguous", caught: "contexts/one that has ended does nothing",
			call: failing(func(_ context.Context, err *lock.Error) error {
				err.OutcomeUnknown = true
				return err
			}),
		},
		{
			does: "a lost answer is reported as certain", caught: "cut/deaf/no outcome is misreported",
			call: failing(func(_ context.Context, err *lock.Error) error {
				err.OutcomeUnknown = false
				return err
			}),
		},
		{
			does: "an entry that was given up stays", caught: "cut/deaf/what was given up is taken back",
			loses: memory.Exclude,
		},
		{
			does: "a call writes an entry again that was revoked meanwhile", caught: "cut/deaf/one call writes its entry once",
			call: func(ctx context.Context, do func(context.Context) error) error {
				err := do(ctx)
				var gone *lock.Error
				if errors.As(err, &gone) && gone.Code == lock.Lost && gone.Reason == lock.Revoked {
					err = do(ctx)
				}
				return err
			},
		},
		{
			does: "errors are not typed", caught: "remove/a repetition is lost and changes nothing",
			call: failing(func(_ context.Context, err *lock.Error) error { return errors.New(err.Error()) }),
		},
		{
			does: "a call waits for as long as its context allows", caught: "cut/silent/calls end in time",
			call: failing(func(ctx context.Context, err *lock.Error) error {
				if err.Code == lock.StoreUnavailable {
					<-ctx.Done()
				}
				return err
			}),
		},
		{
			does: "a call that was cut off reports success", caught: "cut/" + string(storetest.Broken) + "/calls end in time",
			call: failing(func(_ context.Context, err *lock.Error) error {
				if err.Code == lock.StoreUnavailable {
					return nil
				}
				return err
			}),
		},
		{
			does: "lost comes with a reason", caught: "renew/is lost after a removal",
			call: failing(func(_ context.Context, err *lock.Error) error {
				if err.Code == lock.Lost {
					err.Reason = lock.Expired
				}
				return err
			}),
		},
	}
}

// failing changes the errors of all calls.
func failing(change func(context.Context, *lock.Error) error) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, do func(context.Context) error) error {
		err := do(ctx)
		var typed *lock.Error
		if !errors.As(err, &typed) {
			return err
		}
		copied := *typed
		return change(ctx, &copied)
	}
}
