package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/store"
)

// Bounds of what is kept of what operators did. Between two rounds of trimming there can be more.
const (
	MaxAge      = 90 * 24 * time.Hour
	MaxInAll    = 100_000
	MaxOfTenant = 10_000
)

// Which parts of these are kept besides of what users of webhooks did to those. They need not be
// operators, and are not to push out what operators did, nor what they did themselves by what they
// can do without end.
const (
	lastingShare = 5
	passingShare = 10
)

// Records is what the log needs of the store's small records.
type Records interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
}

// Log reads what is on record, and forgets what is too old or too much.
type Log struct {
	records Records
	now     func() time.Time

	ofTenant, inAll int // that are kept at most
}

// NewLog returns the log of what is in records. now is nil for the clock.
func NewLog(records Records, now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	return &Log{records: records, now: now, ofTenant: MaxOfTenant, inAll: MaxInAll}
}

// Query asks for a page of records, the newest first.
type Query struct {
	Tenant string            // "" is all
	May    func(string) bool // which names of locks the reader may use; nil is all
	Since  time.Time         // none from before
	Before string            // the Next of the page before; "" begins with the newest
	Limit  int               // of records, at least 1
}

// Page is a part of the log. Next is "" if there is no more.
type Page struct {
	Records []*Record
	Next    string
	Looked  int // at so many records, those included that are not on the page
}

// Page reads a page. What is added or trimmed meanwhile may be on it or not.
func (l *Log) Page(ctx context.Context, q Query) (*Page, error) {
	newest := weekOf(l.now()) + 1 // for clocks that are ahead
	if id, _, _ := strings.Cut(q.Before, "."); id != "" {
		if at, ok := timeOf(id); ok {
			newest = min(newest, weekOf(at))
		}
	}
	oldest := weekOf(l.now().Add(-MaxAge))
	if !q.Since.IsZero() {
		oldest = max(oldest, weekOf(q.Since))
	}
	found, looked := newestOf{most: q.Limit + 1}, 0
	for w := newest; w >= oldest && len(found.records) <= q.Limit; w-- {
		if err := l.each(ctx, w, q.Tenant, func(r store.Record) {
			looked++
			if q.Before == "" || place(r.ID, r.Tenant) < q.Before {
				found.add(r, &q)
			}
		}); err != nil {
			return nil, err
		}
		found.cut()
	}
	page := &Page{Records: found.records, Looked: looked}
	if len(page.Records) > q.Limit {
		page.Records = page.Records[:q.Limit]
		page.Next = page.Records[q.Limit-1].Place()
	}
	return page, nil
}

// Place is the record's in the log: the Before of a page that goes on after it.
func (r *Record) Place() string { return place(r.ID, r.Tenant) }

// place orders records: by their ids, of which two tenants could have the same.
func place(id, tenant string) string { return id + "." + tenant }

// newestOf keeps the newest of many records.
type newestOf struct {
	most    int
	records []*Record
}

func (n *newestOf) add(r store.Record, q *Query) {
	one, ok := parse(r)
	if !ok || one.At.Before(q.Since) || q.May != nil && !one.MayKnow(q.May) {
		return
	}
	if n.records = append(n.records, one); len(n.records) >= 2*n.most+100 {
		n.cut()
	}
}

func (n *newestOf) cut() {
	slices.SortFunc(n.records, func(a, b *Record) int { return cmp.Compare(place(b.ID, b.Tenant), place(a.ID, a.Tenant)) })
	if len(n.records) > n.most {
		clear(n.records[n.most:])
		n.records = n.records[:n.most]
	}
}

// each reads the records of a week.
func (l *Log) each(ctx context.Context, week int64, tenant string, use func(store.Record)) error {
	for r, err := range store.EachRecord(ctx, l.records, store.RecordQuery{Kind: kindOf(week), Tenant: tenant}) {
		if err != nil {
			return err
		}
		if at, ok := timeOf(r.ID); ok && weekOf(at) == week {
			use(r)
		}
	}
	return nil
}
