package audit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// pace is the time between two rounds of trimming, and soon that after a round that forgot
	// many: then many come to be on record, and the next round would find too many.
	pace = 10 * time.Minute
	soon = time.Minute
	many = 1000

	// atOnce is how many records are forgotten at the same time. One after the other they would
	// be forgotten more slowly than tenants can write them.
	atOnce = 16
)

// Run trims the log from time to time until ctx ends, while mine says that it is this
// replica's work. If two do it, no more is forgotten than by one.
func (l *Log) Run(ctx context.Context, mine func() bool, log *slog.Logger) {
	for ctx.Err() == nil {
		wait := pace
		if mine() {
			forgotten, err := l.trim(ctx)
			if err != nil && ctx.Err() == nil {
				log.Warn("the audit could not be trimmed, and is tried again", "error", err)
			}
			if forgotten >= many {
				wait = soon
			}
		}
		_ = store.Pause(ctx, wait) // the loop ends with ctx
	}
}

// Trim forgets what is too old, and the oldest of what is too much of each tenant. What is too much in
// all is taken from those tenants of which most is kept.
func (l *Log) Trim(ctx context.Context) error {
	_, err := l.trim(ctx)
	return err
}

// trimming is what is kept, apart by who could push it out.
type trimming struct {
	before string // ids from before are too old

	operators *share // what operators did, to webhooks too
	lasting   *share // what their users did to webhooks
	passing   *share // what they can do again and again, without a trace elsewhere
}

func (l *Log) trim(ctx context.Context) (forgotten int, err error) {
	now := l.now()
	t := &trimming{
		before:    firstID(now.Add(-MaxAge)),
		operators: newShare(l.ofTenant, l.inAll),
		lasting:   newShare(l.ofTenant/lastingShare, l.inAll/lastingShare),
		passing:   newShare(l.ofTenant/passingShare, l.inAll/passingShare),
	}
	for w := weekOf(now) + 1; w > weekOf(now)+1-kinds; w-- {
		gone, err := l.collect(ctx, kindOf(w), t)
		if err != nil {
			return forgotten, err
		}
		if err := l.forget(ctx, gone); err != nil {
			return forgotten, err
		}
		forgotten += len(gone)
	}
	var gone []kept
	for _, s := range t.shares() {
		gone = append(gone, s.tooMuchInAll()...)
	}
	return forgotten + len(gone), l.forget(ctx, gone)
}

func (t *trimming) shares() []*share { return []*share{t.operators, t.lasting, t.passing} }

// collect reads the records of a kind, whichever week they are of. It returns those that are too
// old, and what is too much of tenants with what was collected before.
func (l *Log) collect(ctx context.Context, kind string, t *trimming) (gone []kept, err error) {
	for r, err := range store.EachRecord(ctx, l.records, store.RecordQuery{Kind: kind}) {
		if err != nil {
			return nil, err
		}
		one := kept{r.RecordKey, r.Version}
		if r.ID < t.before {
			gone = append(gone, one)
		} else {
			t.shareOf(r).add(one)
		}
	}
	for _, s := range t.shares() {
		gone = append(gone, s.tooMuchOfTenants()...)
	}
	return gone, nil
}

// shareOf is where a record counts. What cannot be read counts as of operators: nobody else could
// have put it there.
func (t *trimming) shareOf(r store.Record) *share {
	known, ok := parse(r)
	switch {
	case !ok || !known.byUser():
		return t.operators
	case known.lasts():
		return t.lasting
	}
	return t.passing
}

// byUser reports whether somebody did it who may use webhooks, rather than an operator.
func (r *Record) byUser() bool {
	return r.By.Scope == scopeOfUsers && strings.HasPrefix(r.Action, webhookActions)
}

// lasts reports whether it made something else of a webhook than it was. Pausing one is no such
// thing: it can be taken back and done again without end.
func (r *Record) lasts() bool {
	switch r.Action {
	case TestWebhook, Redeliver, PauseWebhook, ResumeWebhook:
		return false
	}
	return true
}

// forget deletes records, several at once. Those that others deleted meanwhile are no error.
func (l *Log) forget(ctx context.Context, gone []kept) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, one := range gone {
		if ctx.Err() != nil {
			break // one failed, and so would the others
		}
		g.Go(func() error {
			err := l.records.Delete(ctx, one.key, one.version)
			if errors.Is(err, lock.NotFound) || errors.Is(err, lock.Changed) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
