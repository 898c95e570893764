package audit

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/store"
)

// How long records are kept. Not one that is younger is deleted. Records of [MaxAge] stay apart
// from those of today, whose kinds are the same 16 weeks later.
const (
	DefaultRetention = 30 * 24 * time.Hour
	MinAge           = 24 * time.Hour
	MaxAge           = 90 * 24 * time.Hour
)

// Records is what the log needs of the store's small records.
type Records interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
}

// Log reads what is on record, and deletes what is older than the retention.
type Log struct {
	records   Records
	retention time.Duration
	now       func() time.Time
}

// NewLog returns the log that is kept in records. It keeps each record for the retention, which
// lies between [MinAge] and [MaxAge]. now is nil for the clock.
func NewLog(records Records, retention time.Duration, now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	return &Log{records: records, retention: retention, now: now}
}

// Query asks for a page of records, the newest first.
type Query struct {
	Tenant string             // "" is all
	May    func(string) bool  // which names of locks the reader may use; nil is all
	Match  func(*Record) bool // which records are asked for; nil is all
	Since  time.Time          // none from before
	Before string             // the Next of the page before; "" begins with the newest
	Limit  int                // of records, at least 1
	// a guess how much time they take, such as the Span of the page before; 0 is an hour
	Span time.Duration
}

// Page is a part of the log. Next is "" if there is no more.
type Page struct {
	Records []*Record
	Next    string
	Span    time.Duration // that was read for it
}

// Page reads a page. What is added or trimmed meanwhile may be on it or not. It goes back in time,
// as far as it takes to fill the page: stores list by tenants, so of all of them only what is of a
// time is the newest. A page with a Next may have fewer records than the limit, or none.
func (l *Log) Page(ctx context.Context, q Query) (*Page, error) {
	r := l.reader(q)
	for r.until.After(r.oldest) && len(r.found) <= q.Limit && !r.readEnough() {
		if err := r.goBack(ctx); err != nil {
			return nil, err
		}
	}
	page := &Page{Records: r.found, Span: r.newest.Sub(r.until)}
	switch {
	case len(page.Records) > q.Limit:
		page.Records = page.Records[:q.Limit]
		page.Next = page.Records[q.Limit-1].Place()
	case r.until.After(r.oldest):
		page.Next = firstID(r.until)
	}
	return page, nil
}

// Place is the record's in the log: the Before of a page that goes on after it.
func (r *Record) Place() string { return place(r.ID, r.Tenant) }

// place orders records by id, then by tenant: two tenants could have one id.
func place(id, tenant string) string { return id + "." + tenant }
