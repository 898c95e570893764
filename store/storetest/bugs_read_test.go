package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// readBugs are about answers to questions.
func readBugs() []bug {
	return []bug{
		{
			does: "the second client's queue is behind", caught: "read/each client sees what the other has done",
			queue: func(c *client, _ lock.Ref, entries []*lock.Entry) ([]*lock.Entry, error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if n := len(c.gone); c.second && n > 0 && len(entries) == 0 {
					return c.gone[n-1:], nil
				}
				return entries, nil
			},
		},
		{
			does: "an empty queue is an error", caught: "read/a lock that nobody wants",
			queue: func(_ *client, r lock.Ref, entries []*lock.Entry) ([]*lock.Entry, error) {
				if len(entries) == 0 {
					return nil, lock.Errorf(lock.NotFound, "%s has no queue", r.Name)
				}
				return entries, nil
			},
		},
		{
			does: "the newest number is behind", caught: "read/the newest number is never behind",
			newest: func(number uint64) uint64 { return max(number, 1) - 1 },
		},
		{
			does: "a queue contains those whose names it begins", caught: "tenants/names that resemble each other are apart",
			queue: func(c *client, r lock.Ref, _ []*lock.Entry) (all []*lock.Entry, err error) {
				for _, e := range c.server.Entries() {
					if e.Tenant == r.Tenant && strings.HasPrefix(e.Name(), r.Name) {
						all = append(all, e)
					}
				}
				return all, nil
			},
		},
	}
}

// feedBugs are about what followers are told.
func feedBugs() []bug {
	return []bug{
		{
			does: "the first view lacks the newest entry", caught: "feed/a late follower sees the same",
			follow: viewing(func(_ *client, s *store.Snapshot) { s.Entries = s.Entries[:max(len(s.Entries), 1)-1] }),
		},
		{
			does: "the first view is one page", caught: "feed/more entries than fit a page",
			follow: viewing(func(_ *client, s *store.Snapshot) { s.Entries = s.Entries[:min(len(s.Entries), 1000)] }),
		},
		{
			does: "a feed does not begin with a view", caught: "feed/ends with its context and can start again",
			follow: telling(func(_ *client, t *teller) { t.reset = func(store.Snapshot) {} }),
		},
		{
			does: "a feed tells half of a set", caught: "exclusion/no two holders, fences grow, nobody is forgotten",
			follow: changing(func(c *store.Change) {
				if c.Joined != nil {
					c.Joined.Claims = c.Joined.Claims[:(len(c.Joined.Claims)+1)/2]
				}
			}),
		},
		{
			does: "a feed stops when history is forgotten", caught: "feed/goes on over a compaction",
			compacted: func(b *broken) { b.stopped.Store(true) },
			follow: telling(func(c *client, t *teller) {
				t.apply = func(upTo uint64, changes []store.Change) {
					if !c.stopped.Load() {
						t.Watcher.Apply(upTo, changes)
					}
				}
			}),
		},
		{
			does: "a feed that is cut off does not say so", caught: "cut/broken/the feed says so and starts over",
			follow: telling(func(_ *client, t *teller) { t.lost = func(error) {} }),
		},
		{
			does: "a feed misses what happens while it lists", caught: "feed/nothing is lost between the view and what follows",
			follow: telling(func(c *client, t *teller) {
				var seam uint64
				t.reset = func(s store.Snapshot) {
					t.Watcher.Reset(s)
					pause(time.Millisecond)
					seam = c.server.Number()
				}
				t.apply = func(upTo uint64, changes []store.Change) {
					if upTo > seam {
						t.Watcher.Apply(upTo, changes)
					}
				}
			}),
		},
		{
			does: "a feed goes on after a gap", caught: "cut/silent/the feed says so and starts over",
			follow: telling(func(_ *client, t *teller) {
				began := false
				t.lost = func(error) {}
				t.reset = func(s store.Snapshot) {
					if !began {
						t.Watcher.Reset(s)
					}
					began = true
				}
			}),
		},
		{
			does: "a feed outlives its context", caught: "feed/ends with its context and can start again",
			follow: func(ctx context.Context, c *client, f store.Watcher) { c.sound.Watch(context.WithoutCancel(ctx), f) },
		},
		{
			does: "a feed skips a removal now and then", caught: complete,
			follow: nowAndThen(func(t *teller, upTo uint64, changes []store.Change) {
				if changes[0].Joined != nil {
					t.Watcher.Apply(upTo, changes)
				}
			}),
		},
		{
			does: "a feed repeats a change now and then", caught: complete,
			follow: nowAndThen(func(t *teller, upTo uint64, changes []store.Change) {
				t.Watcher.Apply(upTo, changes)
				t.Watcher.Apply(upTo, changes)
			}),
		},
		{
			does: "a feed tells changes out of order", caught: complete,
			follow: telling(func(_ *client, t *teller) {
				var held func() // told after the next change
				t.apply = func(upTo uint64, changes []store.Change) {
					if held == nil && upTo%9 == 0 {
						held = func() { t.Watcher.Apply(upTo, changes) }
						return
					}
					if t.Watcher.Apply(upTo, changes); held != nil {
						held()
						held = nil
					}
				}
			}),
		},
		{
			does: "an end has the number of the write before it", caught: "feed/changes have the numbers of their writes",
			follow: changing(func(c *store.Change) {
				if c.Joined == nil {
					c.Number--
				}
			}),
		},
		{
			does: "a feed that tells two writes at once gives the ends of the first the number of the second", caught: "feed/changes have the numbers of their writes",
			follow: telling(func(c *client, t *teller) {
				var first []store.Change
				t.apply = func(upTo uint64, changes []store.Change) {
					if c.second && upTo%9 == 0 && len(changes) > 0 && changes[0].Joined == nil {
						first = changed(changes, func(c *store.Change) { c.Number = upTo + 1 })
						return
					}
					t.Watcher.Apply(upTo, append(first, changes...))
					first = nil
				}
			}),
		},
		{
			does: "a feed calls from two goroutines", caught: complete,
			follow: nowAndThen(func(t *teller, upTo uint64, changes []store.Change) {
				t.Watcher.Apply(upTo, changes)
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						for range 5000 { // so many that some of them overlap
							t.Watcher.Apply(upTo, nil) // which is harmless
						}
					})
				}
				both.Wait()
			}),
		},
	}
}

const complete = "feed/every change once and in order"

// nowAndThen tells one change of nine otherwise.
func nowAndThen(tell func(t *teller, upTo uint64, changes []store.Change)) following {
	return telling(func(_ *client, t *teller) {
		t.apply = func(upTo uint64, changes []store.Change) {
			if upTo%9 == 0 && len(changes) > 0 {
				tell(t, upTo, changes)
				return
			}
			t.Watcher.Apply(upTo, changes)
		}
	})
}

// trustBugs are about a store that lost its past, and the floor that mends it.
// formBugs are mistakes about what a client does not understand.
func formBugs() []bug {
	return []bug{
		{
			does: "an earlier version opens a store that it does not understand", caught: "form/an older version stops granting when it would misread",
			opensAny: true,
		},
		{
			does: "an earlier version says that all may be granted", caught: "form/an older version stops granting when it would misread",
			refusal: func(c *client) error {
				if c.older {
					return nil
				}
				return c.sound.Refusal()
			},
		},
		{
			does: "an entry that is not understood ends like one that is damaged", caught: "form/an older version stops granting when it would misread",
			queue: func(c *client, _ lock.Ref, entries []*lock.Entry) ([]*lock.Entry, error) {
				for _, e := range entries {
					if c.older && e.TTL == lock.MaxTTL {
						e.TTL = time.Minute
					}
				}
				return entries, nil
			},
		},
		{
			does: "all versions refuse what one does not understand", caught: "form/an older version stops granting when it would misread",
			answered: func(c *client, e, _ *lock.Entry, _ *bool) {
				if e.Async {
					c.base.Store(1)
				}
			},
			refusal: func(c *client) error {
				if c.base.Load() != 0 {
					return unavailable()
				}
				return c.sound.Refusal()
			},
		},
		{
			does: "that an entry is kept is not stored", caught: "form/what an entry has is kept",
			stored: func(_ *client, e *lock.Entry) { e.Async, e.Callback = false, nil },
		},
		{
			does: "the trace is not stored", caught: "form/what an entry has is kept",
			stored: func(_ *client, e *lock.Entry) { e.Trace = "" },
		},
		{
			does: "what an entry asks is not stored", caught: "form/what an entry has is kept",
			stored: func(_ *client, e *lock.Entry) { e.AskWithin = nil },
		},
		{
			does: "a trace stops an earlier version", caught: "form/what an older version understands does not stop it",
			stored: func(_ *client, e *lock.Entry) { e.Async = e.Async || e.Trace != "" },
		},
		{
			does: "a feed lists anew at a new form", caught: "form/a feed that understands it goes on",
			follow: func(ctx context.Context, c *client, f store.Watcher) {
				once, end := context.WithCancel(ctx)
				defer end()
				c.sound.Watch(once, &teller{Watcher: f, apply: func(upTo uint64, changes []store.Change) {
					if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Joined != nil && c.Joined.Async }) {
						end()
					}
					if once.Err() == nil {
						f.Apply(upTo, changes)
					}
				}})
				if ctx.Err() == nil {
					f.Lost(errors.New("the form has changed"))
					c.sound.Watch(ctx, f)
				}
			},
		},
	}
}

func trustBugs() []bug {
	return []bug{
		{
			does: "distrust is forgotten", caught: "distrust/no new entries, the old ones go on",
			distrust: func(*client) {},
		},
		{
			does: "distrust does not reach the other client", caught: "distrust/no new entries, the old ones go on",
			distrust: func(c *client) { c.doubts.Store(true) },
		},
		{
			does: "a client that refuses to enqueue says that all may be granted", caught: "distrust/no new entries, the old ones go on",
			refusal: func(*client) error { return nil },
		},
		{
			does: "distrust stops refreshes too", caught: "distrust/no new entries, the old ones go on",
			refresh: func(ctx context.Context, c *client, e *lock.Entry) error {
				if err := c.sound.Refusal(); err != nil {
					return err
				}
				return c.sound.Renew(ctx, e)
			},
		},
		{
			does: "a number that a client does not know is believed without a look", caught: "trust/a floor that a client does not know yet is no lost past",
			distrust: func(c *client) { c.doubts.Store(true) },
		},
		{
			does: "a floor that is refused is none", caught: "trust/a floor that cannot be right is refused",
			floored: func(*broken, uint64, error) error { return nil },
		},
		{
			does: "clients that run do not learn of a floor", caught: "trust/a floor binds all at once",
			floored: func(b *broken, floor uint64, err error) error {
				b.base.Store(floor)
				return err
			},
			answered: func(c *client, _, placed *lock.Entry, _ *bool) {
				if !c.late {
					placed.Number -= c.base.Load()
				}
			},
		},
		{
			does: "a feed adds the floor to new entries only", caught: "trust/feeds add the floor to what was there before",
			floored: func(b *broken, floor uint64, err error) error {
				b.base.Store(floor)
				return err
			},
			follow: viewing(func(c *client, s *store.Snapshot) {
				for _, e := range s.Entries {
					e.Number -= c.base.Load()
				}
			}),
		},
	}
}
