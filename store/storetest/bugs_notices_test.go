package storetest_test

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// noticeBugs are about notices.
func noticeBugs() []bug {
	return []bug{
		{
			does: "a repeated notice is written again", caught: "notices/one that is repeated is written once",
			notify: func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error {
				err := c.sound.Notify(ctx, n, of)
				again := *n
				again.ID = rand.Text()
				if err == nil && n.Of != "" {
					err = c.sound.Notify(ctx, &again, of)
				}
				return err
			},
			follow: changing(func(c *store.Change) {
				if c.Notice != nil && c.Notice.Of != "" {
					same := *c.Notice
					same.ID = "same"
					c.Notice = &same
				}
			}),
		},
		{
			does: "a notice of an entry that is gone is written", caught: "notices/belongs to an entry that is there",
			notify: func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error {
				err := c.sound.Notify(ctx, n, of)
				if isLost(err) {
					return nil
				}
				return err
			},
		},
		{
			does: "who lists has no notices", caught: "notices/who lists has those of entries that are there",
			follow: viewing(func(_ *client, s *store.Snapshot) { s.Notices = nil }),
		},
		{
			does: "a feed tells notices at the end of each part", caught: "notices/every feed tells them in order, once",
			follow: telling(func(c *client, t *teller) {
				t.apply = func(upTo uint64, changes []store.Change) {
					told := slices.DeleteFunc(slices.Clone(changes), func(change store.Change) bool {
						return change.Notice != nil && c.second && upTo%2 == 0
					})
					t.Watcher.Apply(upTo, told)
				}
			}),
		},
		{
			does: "the text of a notice is not stored", caught: "notices/one that is repeated is written once",
			notify: func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error {
				bare := *n
				bare.Text = nil
				return c.sound.Notify(ctx, &bare, of)
			},
		},
		{
			does: "a notice is written into a store that lost its past", caught: "notices/none in a store that lost its past",
			notify: func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error {
				if c.sound.Refusal() != nil {
					return nil
				}
				return c.sound.Notify(ctx, n, of)
			},
		},
		{
			does: "a notice has no bounds", caught: "notices/out of bounds",
			notify: func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error {
				if n.Check() != nil {
					return nil
				}
				return c.sound.Notify(ctx, n, of)
			},
		},
	}
}
