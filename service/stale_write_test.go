package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

func (r *replica) report(name string, presented, known uint64, resource string) error {
	r.t.Helper()
	return r.reportAs("", name, presented, known, resource)
}

func (r *replica) reportAs(reporter, name string, presented, known uint64, resource string) error {
	r.t.Helper()
	w := lock.StaleWrite{Presented: presented, Known: known, Resource: resource, Reporter: reporter}
	return r.ReportStaleWrite(r.t.Context(), lock.Ref{Tenant: "acme", Name: name}, w)
}

// reported returns the resources of the kept reports about a lock.
func (r *replica) reported(name string) (resources []string) {
	r.t.Helper()
	all, err := r.Of(r.t.Context(), lock.Ref{Tenant: "acme", Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range all {
		resources = append(resources, w.Resource)
	}
	return resources
}

// TestStaleWritesAreKeptForAllReplicas: reports to several replicas are kept together, the newest
// first, and only of the requested lock.
func TestStaleWritesAreKeptForAllReplicas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.release(a.hold(want("orders:1", 0)))
		now := a.hold(want("orders:1", 0)).Entry.Number
		for i, r := range []*replica{a, b, b, a} {
			if err := r.report("orders:1", 1, now, fmt.Sprint("db-", i)); err != nil {
				t.Fatal(err)
			}
			after(10 * time.Millisecond)
		}
		if err := a.report("orders:2", 1, now, "disk"); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Second)
		for _, r := range []*replica{a, b} {
			if got := strings.Join(r.reported("orders:1"), " "); got != "db-3 db-2 db-1 db-0" {
				t.Errorf("kept are %s", got)
			}
		}
	})
}

// TestNewestStaleWritesAreKept: of many and long reports the newest are kept, and they cost a
// write a second. What the store does not take at first is kept later.
func TestNewestStaleWritesAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		records := &countedRecords{fail: errors.New("the store is down")}
		r := s.replica(t, func(c *service.Config) { records.Records, c.Records = c.Records, records })
		r.hold(want("a", 0))
		known := r.hold(want("b", 0)).Entry.Number
		for i := range 500 {
			if err := r.report("a", 1, known, fmt.Sprint("db-", i)); err != nil {
				t.Fatal(err)
			}
			after(time.Millisecond)
		}
		after(3 * time.Second)
		records.repair()
		after(3 * time.Second)
		if n := records.count(); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
		kept := r.reported("a")
		if len(kept) != service.MaxStaleWrites || kept[0] != "db-499" || kept[99] != "db-400" {
			t.Errorf("%d are kept, from %s to %s", len(kept), kept[0], kept[len(kept)-1])
		}
		long := strings.Repeat("\U0001F600", 199)
		for i := range 500 {
			if err := r.report("a", 1, known, fmt.Sprint(long[:len(long)-8], i)); err != nil {
				t.Fatal(err)
			}
			after(time.Millisecond)
		}
		after(3 * time.Second)
		if kept := r.reported("a"); len(kept) < 50 || !strings.HasSuffix(kept[0], "499") {
			t.Errorf("%d long ones are kept", len(kept))
		}
	})
}

// countedRecords counts the writes, and fails them while fail is set.
type countedRecords struct {
	service.Records

	mu   sync.Mutex
	puts int
	fail error
}

// repair ends the failure, and counts from here on.
func (c *countedRecords) repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail, c.puts = nil, 0
}

func (c *countedRecords) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puts
}

func (c *countedRecords) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	c.mu.Lock()
	c.puts++
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		return 0, fail
	}
	return c.Records.Put(ctx, p)
}

func TestBadStaleWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		now := r.hold(want("orders:1", 0)).Entry.Number
		for _, c := range []struct {
			presented, known uint64
			field            string
		}{
			{0, now, "fence_presented"},
			{now, now, "fence_presented"},
			{now, 0, "fence_known"},
			{now, now + 1, "fence_known"},
			{now, 1 << 53, "fence_known"},
			{1 << 53, now, "fence_presented"},
		} {
			if e := coded(
				t, r.report("orders:1", c.presented, c.known, "db"), lock.InvalidRequest,
			); e.Field != c.field {
				t.Errorf("%+v is refused for %s: %s", c, e.Field, e.Detail)
			}
		}
		next := r.hold(want("orders:2", 0)).Entry.Number
		for _, resource := range []string{"", strings.Repeat("x", 201), "two\nlines"} {
			if e := coded(
				t, r.report("orders:1", now, next, resource), lock.InvalidRequest,
			); e.Field != "resource" {
				t.Errorf("%q is refused for %s", resource, e.Field)
			}
		}
	})
}

// TestStaleWriteShowsHowLateTheHolderWas: if the replica saw the hold expire, the report has the
// time since then and the TTL with which the lease would have lasted until the report.
func TestStaleWriteShowsHowLateTheHolderWas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		late := r.hold(want("orders:1", 0)).Entry
		after(late.TTL + 10*time.Second) // no renewal comes
		now := r.hold(want("orders:1", 0)).Entry.Number
		if err := r.report("orders:1", late.Number, now, "db"); err != nil {
			t.Fatal(err)
		}
		if err := r.report("orders:1", 1, now, "db"); err != nil {
			t.Fatal(err)
		}
		after(3 * time.Second)
		all, err := r.Of(t.Context(), lock.Ref{Tenant: "acme", Name: "orders:1"})
		if err != nil || len(all) != 2 {
			t.Fatalf("%d reports are kept, %v", len(all), err)
		}
		slices.SortFunc(all, func(a, b service.StaleWrite) int { return int(b.Late - a.Late) })
		w, unknown := all[0], all[1]
		if w.Holder != late.Holder || w.Ended != lock.Expired || w.Late <= 0 || w.Late > 10*time.Second ||
			w.EnoughTTL() < late.TTL+w.Late || w.EnoughTTL() > late.TTL+w.Late+time.Second {
			t.Errorf("kept is %+v, with the TTL %v as enough", w, w.EnoughTTL())
		}
		if unknown.Holder != "" || unknown.Late != 0 || unknown.EnoughTTL() != 0 {
			t.Errorf("of an unknown fence is kept %+v", unknown)
		}
	})
}

// forgetful loses the answers of the first writes.
type forgetful struct {
	service.Records
	lost int
}

func (f *forgetful) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	version, err := f.Records.Put(ctx, p)
	if f.lost > 0 && err == nil {
		f.lost--
		return 0, &lock.Error{Code: lock.StoreUnavailable, OutcomeUnknown: true}
	}
	return version, err
}

// TestStaleWriteIsKeptOnce: a report whose write was repeated, because its answer was lost, is
// there once.
func TestStaleWriteIsKeptOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.Records = &forgetful{Records: c.Records, lost: 3} })
		r.hold(want("a", 0))
		known := r.hold(want("b", 0)).Entry.Number
		if err := r.report("a", 1, known, "db"); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Second)
		if got := strings.Join(r.reported("a"), " "); got != "db" {
			t.Errorf("kept are %q", got)
		}
	})
}

// TestReportersShareTheKeptStaleWrites: one reporter evicts its own reports, not the last ones of
// another, by many locks and long names too. Of one reporter's, those of the lock with most go.
func TestReportersShareTheKeptStaleWrites(t *testing.T) {
	long := strings.Repeat("\U0001F600", 190)
	for name, flood := range map[string]struct {
		reporter string
		lock     func(i int) string
	}{
		"one lock of another reporter":   {"scratch", func(int) string { return "scratch:1" }},
		"many locks of another reporter": {"scratch", func(i int) string { return fmt.Sprint("scratch:", i) }},
		"another lock of this reporter":  {"pay", func(int) string { return "scratch:1" }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newSharedStore(t).replica(t)
				r.hold(want("a", 0))
				known := r.hold(want("b", 0)).Entry.Number
				if err := r.reportAs("pay", "pay:1", 1, known, "db"); err != nil {
					t.Fatal(err)
				}
				for i := range 300 {
					after(20 * time.Millisecond)
					err := r.reportAs(flood.reporter, flood.lock(i), 1, known, fmt.Sprint(long, i))
					if err != nil {
						t.Fatal(err)
					}
				}
				after(5 * time.Second)
				if got := strings.Join(r.reported("pay:1"), " "); got != "db" {
					t.Errorf("kept are %q", got)
				}
			})
		})
	}
}

// TestRepeatedStaleWritesAreMerged: a report that repeats another one is kept once, as the newest,
// with the end of the hold if one of the replicas knew it. That of another reporter is kept too.
func TestRepeatedStaleWritesAreMerged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.replica(t)
		first := a.hold(want("orders:1", 0))
		a.release(first)
		known := a.hold(want("orders:1", 0)).Entry.Number
		b := s.replica(t) // it did not see the release
		for _, r := range []*replica{a, a, b} {
			if err := r.report("orders:1", first.Entry.Number, known, "db"); err != nil {
				t.Fatal(err)
			}
			after(3 * time.Second)
		}
		all, err := a.Of(t.Context(), lock.Ref{Tenant: "acme", Name: "orders:1"})
		if err != nil || len(all) != 1 {
			t.Fatalf("%d reports are kept, %v", len(all), err)
		}
		if w := all[0]; w.Holder != first.Entry.Holder || w.Late < 6*time.Second ||
			w.Late > 7*time.Second {
			t.Errorf("kept is %+v", w)
		}
		if err := b.reportAs("other", "orders:1", first.Entry.Number, known, "db"); err != nil {
			t.Fatal(err)
		}
		after(3 * time.Second)
		if got := strings.Join(a.reported("orders:1"), " "); got != "db db" {
			t.Errorf("kept are %q", got)
		}
	})
}

// TestStaleWritesAreLogged: a line for each lock of a round, once, and at most ten of a tenant, of
// each reporter in it.
func TestStaleWritesAreLogged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		records := &countedRecords{fail: errors.New("the store is down")}
		r := newSharedStore(t).replica(t, func(c *service.Config) {
			records.Records, c.Records = c.Records, records
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		r.hold(want("a", 0))
		known := r.hold(want("b", 0)).Entry.Number
		report := func(reporter, name string, n int) {
			for i := range n {
				if err := r.reportAs(reporter, name, 1, known, fmt.Sprint("db-", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A round begins with the first report. What comes during its pause is the next round.
		round := func(reports func()) func(lines string) int {
			report("", "first", 1)
			synctest.Wait()
			log.Reset()
			reports()
			after(5 * time.Second)
			text := log.String()
			return func(lines string) int { return strings.Count(text, lines) }
		}

		counted := round(func() { report("", "orders:1", 50); report("", "orders:2", 50) })
		if n := counted("lock=orders:"); n != 2 || counted("tenant_reports=100") != 2 {
			t.Errorf("%d lines of two locks while the store is down, want 2", n)
		}
		records.repair()
		counted = round(func() {
			report("pay", "pay:1", 1)
			for i := range 300 {
				report("scratch", fmt.Sprint("scratch:", i), 1)
			}
		})
		if n := counted("lock="); n != 10 || counted("lock=pay:1") != 1 {
			t.Errorf("%d lines of 301 locks, %d of them of another reporter, want 10 and 1", n,
				counted("lock=pay:1"))
		}
	})
}
