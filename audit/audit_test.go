package audit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// ledger is a store with a clock that is set by hand.
type ledger struct {
	*testing.T
	records store.RecordStore
	log     *audit.Log
	now     time.Time
}

func newLedger(t *testing.T) *ledger {
	server := memory.NewServer(memory.Config{})
	t.Cleanup(server.Close)
	c := server.Connect(nil)
	t.Cleanup(c.Close)
	l := &ledger{T: t, records: c.Records(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	l.log = audit.NewLog(l.records, audit.DefaultRetention, func() time.Time { return l.now })
	return l
}

func recordOf(tenant, name string, at time.Time) *audit.Record {
	return &audit.Record{
		At: at, Tenant: tenant, Action: audit.RevokeEntry, Reason: "its node was lost",
		Result: audit.Revoked,
		By: audit.Who{
			Subject: "ops", Tenant: "home", Scope: "admin", Address: "192.0.2.7", Peer: "10.0.0.1",
			RequestID: "r1", ServerRequestID: "s1",
		},
		Object: audit.Object{Locks: []string{name}, Entry: "e1", Holder: "w <1>", Fence: 7, Held: true},
	}
}

// put writes a record of the tenant, made so long ago.
func (l *ledger) put(tenant, name string, ago time.Duration) *audit.Record {
	l.Helper()
	r := recordOf(tenant, name, l.now.Add(-ago))
	if _, err := l.records.Put(l.Context(), r.Put()); err != nil {
		l.Fatal(err)
	}
	return r
}

// all reads the log page by page.
func (l *ledger) all(q audit.Query) (all []*audit.Record) {
	l.Helper()
	for {
		page, err := l.log.Page(l.Context(), q)
		if err != nil {
			l.Fatal(err)
		}
		if len(page.Records) > q.Limit || page.Next != "" && len(page.Records) < q.Limit {
			l.Fatalf("a page of %d, want %d", len(page.Records), q.Limit)
		}
		all = append(all, page.Records...)
		if q.Before = page.Next; q.Before == "" {
			return all
		}
	}
}

const day = 24 * time.Hour

// TestPages reads what is on record over many weeks, in pages of any size.
func TestPages(t *testing.T) {
	l := newLedger(t)
	var want []*audit.Record
	for _, ago := range []time.Duration{
		0, 1, time.Millisecond, time.Second, day, 6 * day, 7 * day, 8 * day, 30 * day, 60 * day, 89 * day,
	} {
		for _, tenant := range []string{"acme", "other"} {
			want = append(want, l.put(tenant, "a:"+tenant, ago))
		}
	}
	newestFirst := func(a, b *audit.Record) int {
		return -slices.Compare([]byte(a.Place()), []byte(b.Place()))
	}
	slices.SortFunc(want, newestFirst)
	only := func(keep func(*audit.Record) bool) []*audit.Record {
		return slices.DeleteFunc(slices.Clone(want), func(r *audit.Record) bool { return !keep(r) })
	}
	for _, limit := range []int{1, 2, 3, 7, 100} {
		for what, c := range map[string]struct {
			q    audit.Query
			want []*audit.Record
		}{
			"all": {audit.Query{}, want},
			"of a tenant": {
				audit.Query{Tenant: "acme"}, only(func(r *audit.Record) bool { return r.Tenant == "acme" }),
			},
			"since": {
				audit.Query{Since: l.now.Add(-7 * day)},
				only(func(r *audit.Record) bool { return !r.At.Before(l.now.Add(-7 * day)) }),
			},
			"of some names": {
				audit.Query{May: func(name string) bool { return name == "a:other" }},
				only(func(r *audit.Record) bool { return r.Tenant == "other" }),
			},
		} {
			c.q.Limit = limit
			if diff := cmp.Diff(c.want, l.all(c.q)); diff != "" {
				t.Errorf("%s by %d (-want +got)\n%s", what, limit, diff)
			}
		}
	}
	for i, r := range want {
		if i > 0 && want[i-1].At.Before(r.At) {
			t.Errorf("%v comes before %v", want[i-1].At, r.At)
		}
	}
}

// TestForeignRecords are not ours, or were made by hand: the log skips them.
func TestForeignRecords(t *testing.T) {
	l := newLedger(t)
	good := recordOf("acme", "a", l.now)
	put := good.Put()
	for id, value := range map[string]string{
		"x": "{}", "zzz": "[]", put.ID[:25] + "u": "{}", put.ID: "no JSON",
	} {
		bad := put
		bad.ID, bad.Value = id, []byte(value)
		if _, err := l.records.Put(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
	}
	good = l.put("acme", "a", 0)
	if diff := cmp.Diff([]*audit.Record{good}, l.all(audit.Query{Limit: 10})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := l.log.Trim(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNeverWrittenOver: a record is new, or it is not written.
func TestNeverWrittenOver(t *testing.T) {
	l := newLedger(t)
	put := recordOf("acme", "a", l.now).Put()
	if put.Version != 0 {
		t.Errorf("it is put over version %d", put.Version)
	}
	if _, err := l.records.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	if _, err := l.records.Put(t.Context(), put); !errors.Is(err, lock.Changed) {
		t.Errorf("a second put = %v", err)
	}
}

// TestClockAhead: what a replica put on record whose clock is ahead, so that it is of the next
// week, is shown.
func TestClockAhead(t *testing.T) {
	l := newLedger(t)
	l.now = time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC) // a week ends
	ahead, behind := l.put("acme", "a", -2*time.Second), l.put("acme", "a", time.Second)
	if all := l.all(
		audit.Query{Limit: 1},
	); len(all) != 2 || all[0].ID != ahead.ID || all[1].ID != behind.ID {
		t.Errorf("%d records are shown, want both", len(all))
	}
}
