package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/store"
)

// operator closes and opens locks, with one write of the store each.
type operator struct {
	w      *world
	stands []*lock.Closure
	ever   []*lock.Closure
}

// do has an operator at no replica change or list the closures, in no time.
func (o *operator) do(action func(*closures.Book) error) error {
	o.w.truth.catchUp()
	client := o.w.server.Connect(nil) // a new one has heard of no number
	defer client.Close()
	err := action(closures.New(closures.Config{Records: client.Records()}))
	o.w.truth.catchUp()
	o.w.explorer.changed(closuresKey)
	return err
}

// close closes a lock, or all of them, and opens them later.
func (o *operator) close() {
	w := o.w
	if w.healed || w.missing {
		return
	}
	locks := w.lockName(w.pick(w.Locks))
	if w.percent(20) {
		locks = "*"
	}
	var made *lock.Closure
	err := o.do(func(b *closures.Book) (err error) {
		made, err = b.Close(context.Background(), closures.CloseRequest{
			Tenant: "acme", Locks: locks, Until: time.Now().Add(lock.MaxClosing - time.Hour),
			Reason: "the stock is counted", By: audit.Who{Subject: "ops"},
		})
		return err
	})
	w.note("close", locks, err == nil)
	switch {
	case err == nil:
	case w.server.Trusted():
		panic(err)
	default:
		return // nothing is written into a store that lost its past
	}
	o.stands, o.ever = append(o.stands, made), append(o.ever, made)
	w.schedule(w.between(100*time.Millisecond, 20*time.Second), func() { o.open(made) })
}

func (o *operator) open(c *lock.Closure) {
	if o.w.missing {
		o.w.schedule(time.Second, func() { o.open(c) })
		return
	}
	o.stands = slices.DeleteFunc(o.stands, c.Is)
	err := o.do(func(b *closures.Book) error {
		return b.Open(context.Background(), closures.OpenRequest{
			ID: c.ID, May: func(string, string) bool { return true }, By: audit.Who{Subject: "ops"},
		})
	})
	o.w.note("open", c.Locks.String(), err == nil) // a restore may have opened it
}

// wentBack reads the closures of a restored copy.
func (o *operator) wentBack() {
	err := o.do(func(b *closures.Book) (err error) {
		o.stands, err = b.List(context.Background(), "acme")
		return err
	})
	o.w.note("closures", len(o.stands), err == nil)
	for _, c := range o.stands { // those that were open again
		if slices.ContainsFunc(o.ever, c.Is) {
			o.w.schedule(o.w.between(time.Second, 20*time.Second), func() { o.open(c) })
		}
	}
}

// checkAdmitted: no entry joins a lock that is closed.
func (o *operator) checkAdmitted(e *lock.Entry) {
	for _, c := range o.stands {
		if c.Closes(e.Tenant, e.Claims, time.Now()) {
			o.w.problem("%s joined at %d, and %s was closed", e.ID, e.Number, c.Locks)
		}
	}
}

// checkClosed: a request is refused only for a closure that there was.
func (o *operator) checkClosed(k *call) {
	if !slices.ContainsFunc(o.ever, func(c *lock.Closure) bool {
		return c.Closes("acme", k.claims, time.Now())
	}) {
		o.w.problem("%v: was told that the lock is closed, which it never was", k)
	}
}

// everClosed reports whether the lock of a claim was ever closed.
func (o *operator) everClosed(claim lock.Claim) bool {
	return slices.ContainsFunc(o.ever, func(c *lock.Closure) bool { return c.Locks.Match(claim.Name) })
}

// reread is longer than a replica needs to read that locks are open again.
const reread = time.Minute

// bookRecords are the records of a replica that hears of no change, so its book is often late.
type bookRecords struct{ store.RecordStore }

// Watch implements [store.RecordStore].
func (bookRecords) Watch(ctx context.Context, _ string, _ func()) { <-ctx.Done() }

// readClosures gives a replica its book, for this life.
func (r *replica) readClosures() *closures.Book {
	book := closures.New(closures.Config{Records: bookRecords{r.store.Records()}, Now: r.wall})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	r.unread = func() { stop(); <-ended }
	go func() { defer close(ended); book.Run(ctx) }()
	return book
}
