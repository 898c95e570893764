package service

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// staleSpan is for how long equal reports are one.
	staleSpan = time.Minute

	// maxStaleReports is how many reports of one tenant are taken up in each staleSpan, at
	// one replica: each is a write. What repeats another one does not count.
	maxStaleReports = 60

	// staleSkew is how much later the clock may have been looked at for what was counted
	// before. With more it was set back.
	staleSkew = 10 * time.Second
)

// ReportStaleWrite tells all who follow the lock that a resource refused a write. Equal
// reports within a minute are one, at one replica, and at several if they come in the same
// minute of the clock. Errors: invalid_request, also if no such fence was handed out yet;
// rate_limited.
func (s *Service) ReportStaleWrite(ctx context.Context, r lock.Ref, w lock.StaleWrite) error {
	ctx, span := s.Tracer.Start(ctx, "service.ReportStaleWrite")
	defer span.End()
	if err := s.checkStale(ctx, w); err != nil {
		return err
	}
	key := staleKey(r, w)
	first, known, err := s.stale.take(r.Tenant, key, s.Now())
	if known || err != nil {
		return err
	}
	id := "stale:" + first.UTC().Truncate(staleSpan).Format("200601021504") + ":" + key
	err = s.Store.Notify(context.WithoutCancel(ctx), lock.NoticeOfStaleWrite(r, id, w), nil)
	s.stale.done(r.Tenant, key, err == nil)
	return err
}

// checkStale finds out whether there can be such a report. A fence that nobody has been
// given yet is no resource's.
func (s *Service) checkStale(ctx context.Context, w lock.StaleWrite) error {
	if err := w.Check(); err != nil {
		return err
	}
	if w.Known <= s.view.Number() {
		return nil
	}
	newest, err := s.Store.Newest(ctx)
	if err == nil && w.Known > newest {
		return lock.Invalid("fence_known", "is greater than every fence that was handed out")
	}
	return err
}

// staleKey is the same for equal reports, and is part of an id.
func staleKey(r lock.Ref, w lock.StaleWrite) string {
	h := sha256.New()
	writeParts(h, r.Name, w.Resource)
	writeNumber(h, int64(w.Presented))
	return "k" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:15])
}

// staleReports are those of the last minute. They are bounded for each tenant, and tenants by
// how many there are who report in a minute. The zero value is ready.
type staleReports struct {
	mu      sync.Mutex
	tenants map[string]map[string]staleReport // by its key
	swept   time.Time
}

// staleReport is one that was taken up.
type staleReport struct {
	at      time.Time
	written bool // rather than on its way
}

// take notes a report, and returns when it was first made. known says that it repeats another
// one that was written. One that is on its way may fail yet, so a repetition is written too:
// under the same id, once.
func (x *staleReports) take(tenant, key string, now time.Time) (first time.Time, known bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(now)
	own := x.tenants[tenant]
	if was, ok := own[key]; ok && within(was.at, now) {
		return was.at, was.written, nil
	}
	recent := 0
	var oldest time.Time
	for _, was := range own {
		if !within(was.at, now) {
			continue
		}
		if recent++; oldest.IsZero() || was.at.Before(oldest) {
			oldest = was.at
		}
	}
	if recent >= maxStaleReports {
		return now, false, &lock.Error{
			Code: lock.RateLimited, Detail: "too many stale writes are reported", RetryAfter: oldest.Add(staleSpan).Sub(now),
		}
	}
	if own == nil {
		own = map[string]staleReport{}
		x.tenants[tenant] = own
	}
	own[key] = staleReport{at: now}
	return now, false, nil
}

// done says whether a report was written. One that could not be can be made again.
func (x *staleReports) done(tenant, key string, written bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was, ok := x.tenants[tenant][key]
	switch {
	case ok && written:
		x.tenants[tenant][key] = staleReport{was.at, true}
	case ok && !was.written:
		delete(x.tenants[tenant], key)
	}
}

// sweep forgets, now and then, what is over. A clock that was set back keeps nothing.
func (x *staleReports) sweep(now time.Time) {
	if x.tenants != nil && within(x.swept, now) {
		return
	}
	was := x.tenants
	x.tenants, x.swept = map[string]map[string]staleReport{}, now
	for tenant, own := range was {
		for key, was := range own {
			if !within(was.at, now) {
				delete(own, key)
			}
		}
		if len(own) > 0 {
			x.tenants[tenant] = own
		}
	}
}

// within reports whether an instant is less than a span ago. Requests that come at one time
// are not counted in the order in which they looked at the clock.
func within(at, now time.Time) bool {
	ago := now.Sub(at)
	return ago > -staleSkew && ago < staleSpan
}
