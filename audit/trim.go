package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// pace is the time between two rounds of trimming.
const pace = 10 * time.Minute

// Run trims the log from time to time until ctx ends, while mine says that it is this
// replica's work. If two do it, no more is forgotten than by one.
func (l *Log) Run(ctx context.Context, mine func() bool, log *slog.Logger) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ctx.Err() == nil {
		if mine() {
			if err := l.Trim(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the audit could not be trimmed, and is tried again", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// trimming counts what is kept, from the newest on.
type trimming struct {
	before   string // ids from before are too old
	every    share  // of all records
	webhooks share  // of those about webhooks
}

// share counts records up to a bound.
type share struct {
	ofTenant map[string]int
	all      int

	mostOfTenant, most int
}

func (s *share) full(tenant string) bool {
	return s.ofTenant[tenant] >= s.mostOfTenant || s.all >= s.most
}

func (s *share) add(tenant string) {
	s.ofTenant[tenant]++
	s.all++
}

// Trim forgets what is too old, and the oldest of what is too much, of each tenant and in all.
func (l *Log) Trim(ctx context.Context) error {
	now := l.now()
	t := &trimming{
		before:   string(lock.IDOf(rawID(now.Add(-MaxAge)))),
		every:    share{ofTenant: map[string]int{}, mostOfTenant: l.ofTenant, most: l.inAll},
		webhooks: share{ofTenant: map[string]int{}, mostOfTenant: l.ofTenant / webhookShare, most: l.inAll / webhookShare},
	}
	for w := weekOf(now) + 1; w > weekOf(now)+1-kinds; w-- {
		if err := l.trimKind(ctx, w, t); err != nil {
			return err
		}
	}
	return nil
}

// kept is what is known of a record that is looked at.
type kept struct {
	key     store.RecordKey
	version uint64
	webhook bool // it is about one
}

// trimKind trims the records of the kind of a week, whichever week they are of.
func (l *Log) trimKind(ctx context.Context, week int64, t *trimming) error {
	var all []kept
	for r, err := range store.EachRecord(ctx, l.records, store.RecordQuery{Kind: kindOf(week)}) {
		if err != nil {
			return err
		}
		known, ok := parse(r)
		all = append(all, kept{r.RecordKey, r.Version, ok && known.aboutWebhook()})
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(b.key.ID, a.key.ID) })
	for _, one := range all {
		if !t.drops(one) {
			continue
		}
		err := l.records.Delete(ctx, one.key, one.version)
		if err != nil && !errors.Is(err, lock.NotFound) && !errors.Is(err, lock.Changed) {
			return err
		}
	}
	return nil
}

// drops reports whether a record is to go, and counts it if it stays.
func (t *trimming) drops(k kept) bool {
	tenant := k.key.Tenant
	if k.key.ID < t.before || t.every.full(tenant) || k.webhook && t.webhooks.full(tenant) {
		return true
	}
	if k.webhook {
		t.webhooks.add(tenant)
	}
	t.every.add(tenant)
	return false
}

func (r *Record) aboutWebhook() bool { return strings.HasPrefix(r.Action, webhookActions) }
