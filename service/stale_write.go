package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// staleWriteKind is the kind of the records, one for each tenant.
	staleWriteKind = "stale-writes"

	// MaxStaleWrites is how many reports a tenant keeps, see [shareStaleWrites].
	MaxStaleWrites = 100

	// staleWriteLines bounds the log lines of a tenant in a round. A lock has one.
	staleWriteLines = 10

	// staleWritePause is the time between two rounds of writes: each tenant with new reports takes
	// one write.
	staleWritePause = time.Second

	// maxStaleTenants bounds the tenants with unwritten reports. Reports of further tenants are only
	// counted.
	maxStaleTenants = 1000

	// staleWriteTries bounds the attempts while other replicas write the same record.
	staleWriteTries = 5
)

// StaleWrite is a kept report.
type StaleWrite struct {
	At        time.Time `json:"at"`
	Lock      string    `json:"lock"`
	Presented uint64    `json:"presented"`
	Known     uint64    `json:"known"`
	Resource  string    `json:"resource"`
	Reporter  string    `json:"reporter,omitempty"`

	// The end of the hold whose fence was presented. Zero if this replica no longer knew it.
	Holder string        `json:"holder,omitempty"`
	Ended  lock.Reason   `json:"ended,omitempty"`
	Late   time.Duration `json:"late,omitempty"` // from the end to the report
	TTL    time.Duration `json:"ttl,omitempty"`  // of the hold

	logged bool
}

// EnoughTTL returns the shortest TTL, in whole seconds, with which the lease would have lasted
// until the report. It is 0 if the lease did not expire, or its end is unknown.
func (w StaleWrite) EnoughTTL() time.Duration {
	if w.Ended != lock.Expired {
		return 0
	}
	return (w.TTL + w.Late + time.Second - 1).Truncate(time.Second)
}

// ReportStaleWrite counts, logs and keeps the report of a resource that rejected a write. The
// tenant's record has it within about a second. Errors: invalid_request, also for a fence that
// the store has not issued yet.
func (x *StaleWrites) ReportStaleWrite(ctx context.Context, r lock.Ref, w lock.StaleWrite) error {
	ctx, span := x.span(ctx, "service.ReportStaleWrite")
	defer span.End()
	if err := x.checkStaleWrite(ctx, w); err != nil {
		return err
	}
	report := x.staleWrite(r, w)
	x.Metrics.StaleWrite(ctx, report.Late)
	x.gather(r.Tenant, 1, report)
	return nil
}

// staleWrite returns the report to keep, with the end of the hold if this replica saw it.
func (x *StaleWrites) staleWrite(r lock.Ref, w lock.StaleWrite) StaleWrite {
	out := StaleWrite{
		At: x.Now().UTC(), Lock: r.Name, Presented: w.Presented, Known: w.Known, Resource: w.Resource,
		Reporter: w.Reporter,
	}
	if end, known := x.figures.Ended(r, w.Presented); known {
		out.Holder, out.Ended, out.TTL = end.Holder, end.Reason, end.TTL
		out.Late = max(0, out.At.Sub(end.At))
	}
	return out
}

// checkStaleWrite returns what is wrong with a report. A resource cannot know a fence that the
// store has not issued yet.
func (x *StaleWrites) checkStaleWrite(ctx context.Context, w lock.StaleWrite) error {
	if err := w.Check(); err != nil {
		return err
	}
	if w.Known <= x.view.Progress.Number() {
		return nil
	}
	newest, err := x.Store.Newest(ctx)
	if err == nil && w.Known > newest {
		return lock.Invalid("fence_known", "is greater than every fence that was handed out; "+
			"send the fence of a grant")
	}
	return err
}

// Of returns the kept reports about a lock, the newest first.
func (x *StaleWrites) Of(ctx context.Context, r lock.Ref) ([]StaleWrite, error) {
	all, _, err := x.read(ctx, r.Tenant)
	return slices.DeleteFunc(all, func(w StaleWrite) bool { return w.Lock != r.Name }), err
}

// StaleWrites keeps the newest reports of each tenant in one small record. It gathers reports for
// a second, so that a tenant takes one write a second, however many reports it sends.
type StaleWrites struct {
	*base
	ready chan struct{} // holds a value while there are unwritten reports

	mu      sync.Mutex
	waiting map[string]*unwrittenReports // by tenant
}

// unwrittenReports are a tenant's reports that the next write will store.
type unwrittenReports struct {
	count int          // since the last write
	kept  []StaleWrite // with a share for each reporter, the newest first
}

func newStaleWrites(b *base) *StaleWrites {
	return &StaleWrites{
		base: b, ready: make(chan struct{}, 1), waiting: map[string]*unwrittenReports{},
	}
}

// gather adds reports, the newest first, to the next write.
func (x *StaleWrites) gather(tenant string, count int, reports ...StaleWrite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fresh := x.waiting[tenant]
	if fresh == nil {
		if len(x.waiting) >= maxStaleTenants {
			return
		}
		fresh = &unwrittenReports{}
		x.waiting[tenant] = fresh
	}
	fresh.count += count
	fresh.kept = shareStaleWrites(mergeStaleWrites(fresh.kept, reports), MaxStaleWrites)
	select {
	case x.ready <- struct{}{}:
	default:
	}
}

// run writes the gathered reports until ctx ends, and then the rest.
func (x *StaleWrites) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-x.ready:
			x.write(ctx)
			_ = store.Pause(ctx, staleWritePause)
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), staleWritePause)
	defer cancel()
	x.write(ctx)
}

func (x *StaleWrites) write(ctx context.Context) {
	x.mu.Lock()
	waiting := x.waiting
	x.waiting = map[string]*unwrittenReports{}
	x.mu.Unlock()
	for tenant, fresh := range waiting {
		x.report(tenant, fresh)
		if err := x.keep(ctx, tenant, fresh.kept); err != nil {
			x.Logger.Warn("reports of stale writes are not kept yet", "tenant", tenant, "error", err)
			x.gather(tenant, 0, fresh.kept...)
		}
	}
}

// report logs the newest report of each lock that was not logged yet, within the tenant's share.
func (x *StaleWrites) report(tenant string, fresh *unwrittenReports) {
	for _, w := range linesOf(fresh.kept) {
		x.Logger.Warn("a resource rejected a write with an old fence", "tenant", tenant, "lock", w.Lock,
			"fence_presented", w.Presented, "fence_known", w.Known, "resource", w.Resource,
			"holder", w.Holder, "ended", w.Ended, "late", w.Late, "enough_ttl", w.EnoughTTL(),
			"tenant_reports", fresh.count)
	}
	for i := range fresh.kept {
		fresh.kept[i].logged = true
	}
}

// keep adds reports to the tenant's record, with a comparison against writes of other replicas.
func (x *StaleWrites) keep(ctx context.Context, tenant string, fresh []StaleWrite) error {
	var err error
	for range staleWriteTries {
		var known []StaleWrite
		var version uint64
		if known, version, err = x.read(ctx, tenant); err != nil {
			return err
		}
		put := store.RecordPut{RecordKey: staleWriteKey(tenant), Version: version}
		put.Value = encodeStaleWrites(mergeStaleWrites(fresh, known))
		_, err = x.Records.Put(ctx, put)
		if !errors.Is(err, lock.Changed) && !errors.Is(err, lock.NotFound) {
			return err
		}
	}
	return err
}

// encodeStaleWrites drops reports until the rest fits into a record.
func encodeStaleWrites(all []StaleWrite) []byte {
	all = shareStaleWrites(all, MaxStaleWrites)
	for {
		value := store.Encode(all)
		if len(value) <= store.MaxRecordValue {
			return value
		}
		all = shareStaleWrites(all, len(all)*9/10)
	}
}

// read returns the kept reports of a tenant, the newest first, and the version of its record.
func (x *StaleWrites) read(ctx context.Context, tenant string) ([]StaleWrite, uint64, error) {
	r, err := x.Records.Get(ctx, staleWriteKey(tenant))
	if errors.Is(err, lock.NotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var all []StaleWrite
	if err := json.Unmarshal(r.Value, &all); err != nil {
		x.Logger.Error("the reports of stale writes cannot be read; they start again", "tenant", tenant,
			"error", err)
		return nil, r.Version, nil
	}
	return all, r.Version, nil
}

func staleWriteKey(tenant string) store.RecordKey {
	return store.RecordKey{Kind: staleWriteKind, Tenant: tenant, ID: "newest"}
}
