package storetest

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func recordRoundTrip(t *recordTrial) {
	values := []string{
		"", "a", "\n", "1 2 3\n4", "\x00\xff", `{"a":1}`, strings.Repeat("x", store.MaxRecordValue),
	}
	for i, value := range values {
		id := fmt.Sprint("r", i)
		version := t.put(t.records(i), recordPut(id, value, 0))
		for j := range 2 {
			t.wantRecord(t.records(j), id, value, version)
		}
		next := t.put(
			t.records(i+1), recordPut(id, value+"!"[:min(1, store.MaxRecordValue-len(value))], version),
		)
		t.wantRecord(t.records(i), id, value+"!"[:min(1, store.MaxRecordValue-len(value))], next)
	}
	t.wantNone(t.records(0), "nobody")
}

func recordCompares(t *recordTrial) {
	a, b := t.records(0), t.records(1)
	first := t.put(a, recordPut("r", "one", 0))
	for _, c := range []struct {
		what    string
		version uint64
		code    lock.Code
	}{
		{"Put of a record that is there", 0, lock.Changed},
		{"Put over an unknown version", first + 1, lock.Changed},
		{"Put over a version before", first - 1, lock.Changed},
	} {
		_, err := b.Put(t.ctx, recordPut("r", "two", c.version))
		t.wantCode(c.what, err, c.code)
		t.wantRecord(a, "r", "one", first)
	}
	second := t.put(b, recordPut("r", "two", first))
	_, err := a.Put(t.ctx, recordPut("r", "three", first))
	t.wantCode("Put over the version before", err, lock.Changed)
	t.wantRecord(a, "r", "two", second)
	_, err = a.Put(t.ctx, recordPut("other", "x", second))
	t.wantCode("Put over what is not there", err, lock.NotFound)
	t.wantNone(b, "other")
}

// recordCounter has both clients add to one number.
func recordCounter(t *recordTrial) {
	t.put(t.records(0), recordPut("sum", "0", 0))
	const workers, additions = 6, 10
	together(workers, func(worker int) {
		for range additions {
			t.add(worker)
		}
	})
	r, err := t.records(1).Get(t.ctx, recordKey("sum"))
	if string(r.Value) != strconv.Itoa(workers*additions) {
		t.Errorf("the sum is %s, %v, want %d", r.Value, err, workers*additions)
	}
}

func (t *recordTrial) add(worker int) {
	for t.ctx.Err() == nil {
		s := t.records(worker)
		r, err := s.Get(t.ctx, recordKey("sum"))
		if err != nil {
			t.Error(err)
			return
		}
		sum, _ := strconv.Atoi(string(r.Value))
		_, err = s.Put(t.ctx, recordPut("sum", strconv.Itoa(sum+1), r.Version))
		if err == nil {
			return
		}
		if !t.is(err, lock.Changed) {
			t.Errorf("Put = %v", err)
			return
		}
	}
}

func recordMadeOnce(t *recordTrial) {
	for round := range 5 {
		id := fmt.Sprint("r", round)
		var made atomic.Int32
		together(8, func(i int) {
			_, err := t.records(i).Put(t.ctx, recordPut(id, "the same", 0))
			if err == nil {
				made.Add(1)
			} else {
				t.wantCode("Put", err, lock.Changed)
			}
		})
		if made.Load() != 1 {
			t.Errorf("%d of 8 made the record", made.Load())
		}
	}
}

func recordBounds(t *recordTrial) {
	s := t.records(0)
	long := strings.Repeat("x", lock.MaxNameLength+1)
	for _, k := range []store.RecordKey{
		{},
		{Kind: "note", Tenant: "acme"},
		{Kind: "note", ID: "r"},
		{Tenant: "acme", ID: "r"},
		{Kind: "no/te", Tenant: "acme", ID: "r"},
		{Kind: "note", Tenant: "ac/me", ID: "r"},
		{Kind: "note", Tenant: "acme", ID: "a/b"},
		{Kind: "Note", Tenant: "acme", ID: "r"},
		{Kind: "note", Tenant: "acme", ID: "a,b"},
		{Kind: "note", Tenant: "acme", ID: long},
		{Kind: "note", Tenant: "acme", ID: ".."},
		{Kind: "-", Tenant: "-", ID: "r"},
	} {
		_, err := s.Put(t.ctx, store.RecordPut{RecordKey: k})
		t.wantCode(fmt.Sprintf("Put(%q)", k), err, lock.InvalidRequest)
		_, err = s.Get(t.ctx, k)
		t.wantCode(fmt.Sprintf("Get(%q)", k), err, lock.InvalidRequest)
		t.wantCode(fmt.Sprintf("Delete(%q)", k), s.Delete(t.ctx, k, 1), lock.InvalidRequest)
	}
	_, err := s.Put(t.ctx, recordPut("r", strings.Repeat("x", store.MaxRecordValue+1), 0))
	t.wantCode("Put of too much", err, lock.InvalidRequest)
	t.wantCode("Delete of version 0", s.Delete(t.ctx, recordKey("r"), 0), lock.InvalidRequest)
	for _, q := range []store.RecordQuery{
		{},
		{Kind: "a/b"},
		{Kind: "note", Tenant: "A"},
		{Kind: "note", After: strings.Repeat("x", 400)},
		{Kind: "note", From: strings.Repeat("x", 400)},
		{Kind: "note", Until: strings.Repeat("x", 400)},
	} {
		_, err := s.List(t.ctx, q)
		t.wantCode(fmt.Sprintf("List(%+v)", q), err, lock.InvalidRequest)
	}
	none := store.RecordKey{Kind: "note", Tenant: store.NoTenant, ID: "R._:@=+-9"}
	version := t.put(s, store.RecordPut{RecordKey: none, Value: []byte("x")})
	if got, err := t.records(1).Get(t.ctx, none); err != nil || got.Version != version {
		t.Errorf("Get of no tenant's = %+v, %v", got, err)
	}
	t.wantNone(s, "r")
}

func recordDeletes(t *recordTrial) {
	a, b := t.records(0), t.records(1)
	first := t.put(a, recordPut("r", "one", 0))
	beside := t.put(a, recordPut("r2", "beside", 0))
	second := t.put(b, recordPut("r", "two", first))
	t.wantCode("Delete of the version before", a.Delete(t.ctx, recordKey("r"), first), lock.Changed)
	t.wantRecord(b, "r", "two", second)
	if err := a.Delete(t.ctx, recordKey("r"), second); err != nil {
		t.Fatal(err)
	}
	t.wantNone(b, "r")
	t.wantCode("Delete once more", b.Delete(t.ctx, recordKey("r"), second), lock.NotFound)
	_, err := b.Put(t.ctx, recordPut("r", "three", second))
	t.wantCode("Put over what was deleted", err, lock.NotFound)
	t.wantRecord(b, "r2", "beside", beside)
}

// recordVersions makes, changes and deletes one record again and again, by turns with
// others.
func recordVersions(t *recordTrial) {
	last := uint64(0)
	for i := range 12 {
		made := t.put(t.records(i), recordPut("r", "a", 0))
		t.put(t.records(i), recordPut(fmt.Sprint("other", i), "x", 0))
		changed := t.put(t.records(i+1), recordPut("r", "a", made))
		if made <= last || changed <= made {
			t.Fatalf("versions %d and %d after %d", made, changed, last)
		}
		if last != 0 {
			_, err := t.records(i).Put(t.ctx, recordPut("r", "stale", last))
			t.wantCode("Put over a version of the record before", err, lock.Changed)
			t.wantCode("Delete of it", t.records(i+1).Delete(t.ctx, recordKey("r"), last), lock.Changed)
		}
		if err := t.records(i).Delete(t.ctx, recordKey("r"), changed); err != nil {
			t.Fatal(err)
		}
		last = changed
	}
}

// recordPages lists records of tenants and kinds that resemble each other.
func recordPages(t *recordTrial) {
	want := map[string]map[store.RecordKey]uint64{} // by tenant
	for i := range 60 {
		tenant := []string{"a", "a-b", store.NoTenant}[i%3]
		k := store.RecordKey{Kind: "note", Tenant: tenant, ID: fmt.Sprint("r", i)}
		if want[tenant] == nil {
			want[tenant] = map[store.RecordKey]uint64{}
		}
		want[tenant][k] = t.put(t.records(i), store.RecordPut{RecordKey: k, Value: []byte(k.ID)})
		k.Kind = []string{"note-2", "not", "notes"}[i%3]
		t.put(t.records(i), store.RecordPut{RecordKey: k})
	}
	every := map[store.RecordKey]uint64{}
	for _, some := range want {
		maps.Copy(every, some)
	}
	want[""] = every
	for tenant, some := range want {
		for _, limit := range []int{0, 1, 7} {
			all, pages := t.all(
				t.records(limit), store.RecordQuery{Kind: "note", Tenant: tenant, Limit: limit},
			)
			t.wantRecords(all, some)
			if limit > 0 && pages < len(some)/limit {
				t.Errorf("%d records came in %d pages of %d", len(some), pages, limit)
			}
		}
	}
	if all, _ := t.all(t.records(0), store.RecordQuery{Kind: "nothing"}); len(all) > 0 {
		t.Errorf("a kind without records has %d", len(all))
	}
}

func (t *recordTrial) wantRecords(all []store.Record, want map[store.RecordKey]uint64) {
	t.Helper()
	got := map[store.RecordKey]uint64{}
	for _, r := range all {
		if got[r.RecordKey] != 0 {
			t.Errorf("%v is listed twice", r.RecordKey)
		}
		got[r.RecordKey] = r.Version
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
}

// recordPagesMoving lists while others are written, deleted and made again.
func recordPagesMoving(t *recordTrial) {
	want := map[store.RecordKey]uint64{}
	for i := range 40 {
		k := recordKey(fmt.Sprint("stays", i))
		want[k] = t.put(t.records(i), store.RecordPut{RecordKey: k})
	}
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	moving := make(chan struct{})
	go func() {
		defer close(moving)
		for i := 0; ctx.Err() == nil; i++ {
			id := fmt.Sprint("goes", i%9)
			version, err := t.records(1).Put(ctx, recordPut(id, "x", 0))
			if err == nil {
				_ = t.records(1).Delete(ctx, recordKey(id), version)
			}
		}
	}()
	for range 5 {
		all, _ := t.all(t.records(0), store.RecordQuery{Kind: "note", Limit: 6})
		var stay []store.Record
		seen := map[store.RecordKey]bool{}
		for _, r := range all {
			if seen[r.RecordKey] {
				t.Errorf("%v is listed twice", r.RecordKey)
			}
			seen[r.RecordKey] = true
			if strings.HasPrefix(r.ID, "stays") {
				stay = append(stay, r)
			}
		}
		t.wantRecords(stay, want)
	}
	stop()
	<-moving
}

func recordPageBytes(t *recordTrial) {
	want := map[store.RecordKey]uint64{}
	for i := range 40 {
		p := recordPut(fmt.Sprint("r", i), strings.Repeat("x", store.MaxRecordValue), 0)
		want[p.RecordKey] = t.put(t.records(0), p)
	}
	q := store.RecordQuery{Kind: "note"}
	var all []store.Record
	for {
		page, err := t.records(1).List(t.ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) > store.MaxRecordPageBytes/store.MaxRecordValue {
			t.Errorf("a page has %d of the largest records", len(page.Records))
		}
		all = append(all, page.Records...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	t.wantRecords(all, want)
}

// watched counts what a watch says, until its context ends.
func (t *recordTrial) watch(
	ctx context.Context,
	s store.RecordStore,
) (told *atomic.Int32, ended <-chan struct{}) {
	told = &atomic.Int32{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Watch(ctx, "note", func() { told.Add(1) })
	}()
	return told, over
}

func recordWatch(t *recordTrial) {
	ctx, stop := context.WithCancel(t.ctx)
	told, ended := t.watch(ctx, t.records(1))
	t.eventually(t.recovery(), "the watch begins", func() bool { return told.Load() > 0 })
	version := uint64(0)
	for i, change := range []func(){
		func() { version = t.put(t.records(0), recordPut("r", "one", 0)) },
		func() { version = t.put(t.records(0), recordPut("r", "two", version)) },
		func() { t.put(t.records(1), recordPut("other", "own", 0)) },
		func() {
			if err := t.records(0).Delete(t.ctx, recordKey("r"), version); err != nil {
				t.Fatal(err)
			}
		},
		func() { t.put(t.records(0), recordPut("r", "again", 0)) },
	} {
		before := told.Load()
		change()
		t.eventually(
			t.recovery(), fmt.Sprint("change ", i, " is told"), func() bool { return told.Load() > before },
		)
	}
	stop()
	t.wantSignal(ended, "the watch ends with its context")
}

func (t *recordTrial) wantSignal(c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(t.recovery()):
		t.Fatalf("not within %v: %s", t.recovery(), what)
	}
}

func recordContextEnded(t *recordTrial) {
	version := t.put(t.records(0), recordPut("r", "one", 0))
	ctx, stop := context.WithCancel(t.ctx)
	stop()
	s := t.records(0)
	_, err := s.Put(ctx, recordPut("other", "x", 0))
	for doing, err := range map[string]error{
		"Put": err, "Delete": s.Delete(ctx, recordKey("r"), version),
		"Get":  errorOf(s.Get(ctx, recordKey("r"))),
		"List": errorOf(s.List(ctx, store.RecordQuery{Kind: "note"})),
	} {
		t.wantCode(doing, err, lock.StoreUnavailable)
	}
	t.wantNone(t.records(1), "other")
	t.wantRecord(t.records(1), "r", "one", version)
}

func errorOf[T any](_ T, err error) error { return err }

// recordBetween lists the records of tenants that resemble each other from an id on, and before
// one.
func recordBetween(t *recordTrial) {
	all := map[store.RecordKey]uint64{}
	for i := range 100 {
		k := store.RecordKey{
			Kind: "note", Tenant: []string{"a", "a-b", "a0"}[min(i/40, 2)], ID: fmt.Sprintf("r%02d", i%40),
		}
		all[k] = t.put(t.records(i), store.RecordPut{RecordKey: k})
	}
	for _, q := range []store.RecordQuery{
		{From: "r38"},
		{Until: "r02"},
		{From: "r10", Until: "r12"},
		{From: "r101"},
		{From: "s"},
		{Until: "r"},
		{From: "r12", Until: "r10"},
		{From: "r37", Tenant: "a"},
		{From: "r05", Until: "r07", Tenant: "a-b"},
		{Until: "r01", Tenant: "a0"},
	} {
		want := maps.Clone(all)
		maps.DeleteFunc(want, func(k store.RecordKey, _ uint64) bool {
			return k.ID < q.From || q.Until != "" && k.ID >= q.Until ||
				q.Tenant != "" && k.Tenant != q.Tenant
		})
		for _, limit := range []int{0, 1, 2} {
			q.Kind, q.Limit = "note", limit
			got, _ := t.all(t.records(limit), q)
			t.wantRecords(got, want)
		}
	}
}
