package storetest_test

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// leaseBugs are about what ends an entry that nobody renews.
func leaseBugs() []bug {
	return []bug{
		{
			does: "leases end early", caught: "expiry/neither early nor late",
			stored: func(_ *client, e *lock.Entry) { e.TTL = e.TTL * 9 / 10 },
		},
		{
			does: "leases do not end", caught: "expiry/neither early nor late",
			stored: func(_ *client, e *lock.Entry) { e.TTL = time.Hour },
		},
		{
			does: "a TTL loses its fraction", caught: "expiry/neither early nor late",
			stored: func(_ *client, e *lock.Entry) { e.TTL = e.TTL.Truncate(minTTL) },
		},
		{
			does: "an expiry is told as a release", caught: "expiry/neither early nor late",
			follow: changing(insteadOf(lock.Expired, lock.Released)),
		},
		{
			does: "entries share a lease", caught: "expiry/entries do not share a lease",
			refresh: func(ctx context.Context, c *client, e *lock.Entry) error {
				c.refreshAll(ctx, e.TTL)
				return c.sound.Renew(ctx, e)
			},
		},
		{
			does: "a lease is used again without starting anew", caught: "expiry/a new entry has a whole lease",
			stored: func(c *client, e *lock.Entry) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if n := len(c.gone); n > 0 && c.gone[n-1].TTL == e.TTL {
					e.TTL = max(1, time.Until(c.gone[n-1].EnqueuedAt.Add(e.TTL)))
					c.gone = c.gone[:n-1]
				}
			},
		},
		{
			does: "a refresh of a gone entry extends its lease's next user", caught: "renew/a gone entry's keeps no other tenant's alive",
			refresh: func(ctx context.Context, c *client, e *lock.Entry) error {
				err := c.sound.Renew(ctx, e)
				if isLost(err) {
					c.refreshAll(ctx, e.TTL)
				}
				return err
			},
		},
		{
			does: "a refresh does not extend", caught: "renew/extends the lease",
			refresh: func(ctx context.Context, c *client, e *lock.Entry) error {
				_, err := c.sound.Remaining(ctx, e)
				return err
			},
		},
		{
			does: "a refresh asks the lease only", caught: "renew/is lost after a removal",
			refresh: func(ctx context.Context, c *client, e *lock.Entry) error {
				err := c.sound.Renew(ctx, e)
				if isLost(err) && time.Since(e.EnqueuedAt) < e.TTL {
					return nil
				}
				return err
			},
		},
		{
			does: "what remains of a lease does not run down", caught: "renew/tells how much remains",
			remaining: func(e *lock.Entry, _ time.Duration, err error) (time.Duration, error) { return e.TTL, err },
		},
		{
			does: "something remains of a removed entry's lease", caught: "renew/tells how much remains",
			remaining: func(_ *lock.Entry, left time.Duration, err error) (time.Duration, error) {
				if isLost(err) {
					return time.Millisecond, nil
				}
				return left, err
			},
		},
	}
}

// refreshAll refreshes every entry with that TTL.
func (c *client) refreshAll(ctx context.Context, ttl time.Duration) {
	for _, e := range c.server.Entries() {
		if e.TTL == ttl {
			_ = c.sound.Renew(ctx, e) // it may be gone
		}
	}
}

// removeBugs are about what a removal takes away, and what it answers.
// pastBugs are mistakes about what is remembered of entries that ended.
func pastBugs() []bug {
	return []bug{
		{
			does: "what ended is not remembered", caught: "past/what was removed is told to who starts later",
			follow: recalling(func(_ *client, end *store.Ended) { end.Was = store.Past{} }),
		},
		{
			does: "what expired is not remembered", caught: "past/what expired is told to who starts later",
			follow: recalling(func(_ *client, end *store.Ended) {
				if end.Reason == lock.Expired {
					end.Was = store.Past{}
				}
			}),
		},
		{
			does: "what ended is told with another number", caught: "past/what was removed is told to who starts later",
			follow: recalling(func(_ *client, end *store.Ended) { end.Was.Floor++ }),
		},
	}
}

func removeBugs() []bug {
	return []bug{
		{
			does: "a removal does not look at what it was decided by", caught: "remove/only while what it was decided by is there",
			remove: func(ctx context.Context, c *client, r removal) error { return c.sound.Remove(ctx, r.Entry, r.why) },
		},
		{
			does: "a removal takes the head of the queue", caught: "remove/takes the entry and no other",
			remove: taking(func(asked, e *lock.Entry) bool { return sameQueue(asked)(e) }),
		},
		{
			does: "a removal takes a later entry with the same id", caught: "remove/a later entry with the same id survives",
			remove: taking(func(asked, e *lock.Entry) bool { return sameQueue(asked)(e) && e.ID == asked.ID }),
		},
		{
			does: "a removal does not look at the tenant", caught: "remove/takes the entry and no other",
			remove: taking(func(asked, e *lock.Entry) bool {
				return e.ID == asked.ID && e.Number == asked.Number && e.Name() == asked.Name()
			}),
		},
		{
			does: "removing what is gone succeeds", caught: "remove/of many at once one succeeds",
			remove: whenLost(func(*client, removal) bool { return true }),
		},
		{
			does: "a removal beside one that is lost is lost too", caught: "remove/a lost one costs none beside it",
			remove: func(ctx context.Context, c *client, r removal) error {
				if c.byID(r.Entry) != nil && c.lost.Swap(false) {
					return store.Lost("what another one removes is not there")
				}
				err := c.sound.Remove(ctx, r.Entry, r.why, r.while...)
				c.lost.CompareAndSwap(false, isLost(err))
				return err
			},
		},
		{
			does: "removing what is gone overwrites why it went", caught: "remove/a repetition is lost and changes nothing",
			remove: whenLost(func(c *client, r removal) bool {
				c.why = r.why
				return false
			}),
			follow: recalling(func(c *client, end *store.Ended) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.why != "" {
					end.Reason = c.why
				}
			}),
		},
		{
			does: "the feed does not tell the reason", caught: "remove/the reason reaches both feeds",
			follow: changing(func(c *store.Change) { c.Reason = lock.Expired }),
		},
		{
			does: "ends are not remembered", caught: "remove/ends are remembered",
			follow: telling(func(_ *client, t *teller) {
				t.recall = func(_ []store.Ended, complete bool) { t.Watcher.Recall(nil, complete) }
			}),
		},
		{
			does: "a withdrawal is told as an expiry", caught: "remove/a withdrawal is told and not remembered",
			follow: changing(insteadOf(lock.Withdrawn, lock.Expired)),
		},
		{
			does: "a withdrawal is remembered", caught: "remove/a withdrawal is told and not remembered",
			follow: recalling(func(_ *client, end *store.Ended) {
				if end.Reason == lock.Withdrawn {
					end.Reason = lock.Released
				}
			}),
		},
	}
}

// removePutBugs are about a removal and a record that belong together.
func removePutBugs() []bug {
	apart := func(ctx context.Context, c *client, r removal, p store.RecordPut) (err, put error) {
		err = c.sound.Remove(ctx, r.Entry, r.why)
		_, put = c.sound.(*memory.Client).Records().Put(ctx, p)
		return err, put
	}
	return []bug{
		{
			does: "a record is put although the entry is gone", caught: "remove and put/or neither",
			removePut: func(ctx context.Context, c *client, r removal, note *lock.Note, p store.RecordPut) error {
				err := c.sound.RemoveAndPut(ctx, r.Entry, r.why, note, p)
				if isLost(err) {
					_, _ = apart(ctx, c, r, p)
				}
				return err
			},
		},
		{
			does: "an entry is removed although the record cannot be put", caught: "remove and put/or neither",
			removePut: func(ctx context.Context, c *client, r removal, _ *lock.Note, p store.RecordPut) error {
				err, put := apart(ctx, c, r, p)
				if err != nil {
					return err
				}
				return put
			},
		},
		{
			does: "a record is put a write later", caught: "remove and put/both happen, at one number",
			removePut: func(ctx context.Context, c *client, r removal, note *lock.Note, p store.RecordPut) error {
				other := p
				other.ID += "x"
				if other.Version != 0 {
					return c.sound.RemoveAndPut(ctx, r.Entry, r.why, note, p)
				}
				err := c.sound.RemoveAndPut(ctx, r.Entry, r.why, note, other)
				if err == nil {
					_, err = c.sound.(*memory.Client).Records().Put(ctx, p)
				}
				return err
			},
		},
		{
			does: "what an operator says is not told", caught: "remove and put/both happen, at one number",
			follow: changing(func(c *store.Change) { c.Note = nil }),
		},
		{
			does: "what an operator said is forgotten", caught: "remove and put/what was said of an end is remembered",
			follow: recalling(func(_ *client, end *store.Ended) { end.Note = nil }),
		},
	}
}

// taking removes the first entry that is wanted instead of one that is not there.
func taking(wanted func(asked, e *lock.Entry) bool) func(context.Context, *client, removal) error {
	return func(ctx context.Context, c *client, r removal) error {
		err := c.sound.Remove(ctx, r.Entry, r.why, r.while...)
		if other := c.there(func(e *lock.Entry) bool { return wanted(r.Entry, e) }); isLost(err) && other != nil {
			return c.sound.Remove(ctx, other, r.why)
		}
		return err
	}
}

// whenLost does something when an entry is not there, and reports whether to say that it
// was removed.
func whenLost(do func(*client, removal) (succeed bool)) func(context.Context, *client, removal) error {
	return func(ctx context.Context, c *client, r removal) error {
		err := c.sound.Remove(ctx, r.Entry, r.why, r.while...)
		c.mu.Lock()
		defer c.mu.Unlock()
		if isLost(err) && do(c, r) {
			return nil
		}
		return err
	}
}

// setBugs are about what stands in several queues.
func setBugs() []bug {
	const inSteps = 5 * time.Millisecond // from one queue to the next
	leaving := func(d time.Duration) func(context.Context, *client, removal) error {
		return func(ctx context.Context, c *client, r removal) error {
			c.haunt(r.Entry, d)
			return c.sound.Remove(ctx, r.Entry, r.why, r.while...)
		}
	}
	return []bug{
		{
			does: "a set is in its first queue only", caught: "sets/in all queues at one number, and out of all at once",
			queue: hiding(func(*lock.Entry) bool { return true }),
		},
		{
			does: "a set comes into its queues one after the other", caught: "sets/whole or not there, whoever looks",
			queue: hiding(func(e *lock.Entry) bool { return time.Since(e.EnqueuedAt) < inSteps }),
		},
		{
			does: "a set leaves its queues one after the other", caught: "sets/whole or not there, whoever looks",
			remove: leaving(inSteps), queue: haunted,
		},
		{
			does: "a set leaves its first queue only", caught: "sets/in all queues at one number, and out of all at once",
			remove: leaving(time.Hour), queue: haunted,
		},
		{
			does: "two sets stand in one order here and in another there", caught: "sets/crossing ones agree on the order everywhere",
			queue: func(_ *client, r lock.Ref, q []*lock.Entry) ([]*lock.Entry, error) {
				for i := 1; i < len(q); i += 2 {
					if q[i].Set && q[i-1].Set && q[i].Name() != r.Name {
						q[i], q[i-1] = q[i-1], q[i]
					}
				}
				return q, nil
			},
		},
		{
			does: "a set expires in its first queue only", caught: "expiry/a set goes from all queues at once and is told once",
			answered: func(c *client, _, placed *lock.Entry, _ *bool) { c.haunt(placed, time.Hour) }, queue: haunted,
		},
		{
			does: "the expiry of a set is told for each lock", caught: "expiry/a set goes from all queues at once and is told once",
			follow: telling(func(_ *client, t *teller) {
				sets := map[lock.ID]bool{}
				t.apply = func(upTo uint64, changes []store.Change) {
					for _, c := range changes {
						if c.Joined != nil {
							sets[c.Joined.ID] = c.Joined.Set
						} else if sets[c.Left] && c.Reason == lock.Expired {
							changes = append(changes, c)
						}
					}
					t.Watcher.Apply(upTo, changes)
				}
			}),
		},
	}
}

// hiding takes the sets that are to be hidden out of all queues but their first.
func hiding(hide func(*lock.Entry) bool) func(*client, lock.Ref, []*lock.Entry) ([]*lock.Entry, error) {
	return func(_ *client, r lock.Ref, all []*lock.Entry) (seen []*lock.Entry, err error) {
		for _, e := range all {
			if e.Name() == r.Name || !hide(e) {
				seen = append(seen, e)
			}
		}
		return seen, nil
	}
}
