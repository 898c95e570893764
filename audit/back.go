package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	firstSpan  = time.Hour
	spanFactor = 8 // how much more of the time is read next at most, if there was too little

	// moreThanAsked is how many records beyond twice those that were asked for are read of a span
	// before it is held for too long.
	moreThanAsked = store.MaxRecordPage

	// enoughRead is about how many records of the store are read for a page at most: those that are
	// asked for may be few among very many. Then the page ends although it is not full.
	enoughRead = 10_000
)

// reader reads a page, span by span, from the newest back to the oldest. What was read of a span
// counts, unless there was too much: then it is only known from when on there is enough.
type reader struct {
	*Log
	q                   Query
	newest, until       time.Time
	oldest, enoughAfter time.Time // enoughAfter is zero, or there is a page's worth from then on
	allOfIt             bool      // of one moment is more than enough, and all must be read
	span                time.Duration

	found []*Record // the newest first
	seen  int       // records of the store that were read
}

func (l *Log) reader(q Query) *reader {
	r := &reader{Log: l, q: q, span: q.Span}
	if r.span <= 0 {
		r.span = firstSpan
	}
	now := l.now()
	r.until = beginOf(weekOf(now) + 2) // for clocks that are ahead
	if id, _, _ := strings.Cut(q.Before, "."); id != "" {
		if at, ok := timeOf(id); ok && at.Before(r.until) {
			r.until = at.Add(time.Millisecond)
		}
	}
	r.newest = earlier(r.until, now)
	r.oldest = beginOf(weekOf(now.Add(-MaxAge)))
	if q.Since.After(r.oldest) {
		r.oldest = q.Since.Truncate(time.Millisecond)
	}
	return r
}

// goBack reads what is of the next span.
func (r *reader) goBack(ctx context.Context) error {
	from := r.from()
	of := &some{reader: r, most: r.q.Limit + 1 - len(r.found)}
	for w := weekOf(r.until.Add(-1)); w >= weekOf(from) && !of.tooMany(); w-- {
		if err := of.read(ctx, w, from); err != nil {
			return err
		}
	}
	of.cut()
	r.seen += of.seen
	if of.tooMany() {
		least := of.records[of.most-1].At
		r.allOfIt = least.Equal(r.enoughAfter)
		r.enoughAfter = least
		return nil
	}
	if r.found = append(r.found, of.records...); !from.After(r.enoughAfter) {
		r.enoughAfter = time.Time{} // unless something was trimmed meanwhile, that was all
	}
	left := r.q.Limit + 1 - len(r.found)
	wider := min(spanFactor, 2*left/(of.matched+1), enoughRead/(of.seen+1))
	r.span = min(r.span*time.Duration(max(1, wider)), MaxAge)
	r.until = from
	return nil
}

// readEnough reports whether the page ends here. While it is known that there is enough to fill
// it, it goes on: it may not have come further back yet.
func (r *reader) readEnough() bool { return r.seen >= enoughRead && r.enoughAfter.IsZero() }

// from is where the next span begins: if it is known from when on there is enough, in the middle,
// since there may be very much.
func (r *reader) from() time.Time {
	from, oldest := earlier(r.until, r.newest).Add(-r.span), r.oldest
	if !r.enoughAfter.IsZero() {
		from, oldest = r.until.Add(-r.until.Sub(r.enoughAfter)/2), r.enoughAfter
	}
	from = earlier(from.Truncate(time.Millisecond), r.until.Add(-time.Millisecond))
	if r.allOfIt {
		from = oldest
	}
	return later(from, oldest)
}

// some are the newest records of a span that are asked for.
type some struct {
	*reader
	most    int
	records []*Record

	matched, seen int
}

// tooMany reports whether a shorter span will do, and is cheaper than to read all of this one.
func (s *some) tooMany() bool {
	enough := 2*s.most + moreThanAsked
	return !s.allOfIt && s.matched > enough && s.seen <= 4*enough
}

// read reads the records of a week from an instant on, until there are too many.
func (s *some) read(ctx context.Context, week int64, from time.Time) error {
	q := store.RecordQuery{
		Kind: kindOf(week), Tenant: s.q.Tenant,
		From: firstID(later(from, beginOf(week))), Until: firstID(earlier(s.until, beginOf(week+1))),
	}
	for r, err := range store.EachRecord(ctx, s.Log.records, q) {
		if err != nil {
			return err
		}
		s.seen++
		if s.q.Before == "" || place(r.ID, r.Tenant) < s.q.Before {
			s.add(r)
		}
		if s.tooMany() {
			return nil
		}
	}
	return nil
}

func (s *some) add(r store.Record) {
	one, ok := parse(r)
	if !ok || one.At.Before(s.q.Since) || s.q.May != nil && !one.MayKnow(s.q.May) ||
		s.q.Match != nil && !s.q.Match(one) {
		return
	}
	s.matched++
	if s.records = append(s.records, one); len(s.records) >= 2*s.most+100 {
		s.cut()
	}
}

// cut keeps the newest, in their order.
func (s *some) cut() {
	slices.SortFunc(
		s.records,
		func(a, b *Record) int { return cmp.Compare(place(b.ID, b.Tenant), place(a.ID, a.Tenant)) },
	)
	if len(s.records) > s.most {
		clear(s.records[s.most:])
		s.records = s.records[:s.most]
	}
}

// firstID is the smallest id of records of a time.
func firstID(at time.Time) string { return string(lock.IDOf(rawID(at))) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
