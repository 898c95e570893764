package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// RecordHarness is what an adapter's test file brings for its small records.
type RecordHarness struct {
	// Open gives one case its store, which is empty. It closes everything by
	// t.Cleanup.
	Open func(t *testing.T) RecordClients

	// NoCut says why there is no CutB, NoBackup why there is no OpenAlone.
	NoCut, NoBackup string

	// OpenAlone gives a case a store on a server of its own, with Backup.
	OpenAlone func(t *testing.T) RecordClients
}

// RecordClients are two clients that share nothing but their store.
type RecordClients struct {
	A, B store.RecordStore

	// CloseB ends client B in order.
	CloseB func()

	// CutB cuts client B off from the store until restore is called.
	CutB func(t *testing.T, how Fault) (restore func())

	// Backup copies the store's data. restore puts the copy in its place while the
	// clients run.
	Backup func(t *testing.T) (restore func(t *testing.T))
}

// recordTrial is one run of one case of small records.
type recordTrial struct {
	*trial
	RecordClients
}

type recordCase struct {
	name  string
	run   func(*recordTrial)
	needs need
}

// RunRecords checks everything that store.RecordStore promises.
func RunRecords(t *testing.T, h RecordHarness) {
	for _, c := range recordCases() {
		why := map[need]string{cut: h.NoCut, backup: h.NoBackup}[c.needs]
		if why != "" {
			t.Logf("%s does not run: %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			t.Cleanup(cancel)
			open := h.Open
			if c.needs == backup {
				open = h.OpenAlone
			}
			c.run(
				&recordTrial{&trial{T: t, Harness: Harness{CallLimit: 5 * time.Second}, ctx: ctx}, open(t)},
			)
		})
	}
}

// recordCases puts those that wait first, so that the others fill the time.
func recordCases() []recordCase {
	all := []recordCase{
		{
			name: "trust/nothing is written into a store that lost its past", run: recordsLostPast,
			needs: backup,
		},
		{name: "life/ends after its replica has stopped", run: recordLifeEnds, needs: cut},
		{name: "life/lasts while its replica runs", run: recordLifeLasts},
		{name: "life/ends with its replica", run: recordLifeClosed},
		{name: "life/a put decides whether it is bound", run: recordRebound},
	}
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(
			all,
			recordCase{
				"cut/" + string(f) + "/calls end in time", func(t *recordTrial) { recordCutCalls(t, f) }, cut,
			},
			recordCase{
				"cut/" + string(f) + "/no outcome is misreported",
				func(t *recordTrial) { recordCutOutcomes(t, f) }, cut,
			},
			recordCase{
				"cut/" + string(f) + "/a change meanwhile is told",
				func(t *recordTrial) { recordCutWatch(t, f) }, cut,
			},
		)
	}
	return append(all,
		recordCase{name: "put/what was put is there, for both", run: recordRoundTrip},
		recordCase{name: "put/only over the version that was read", run: recordCompares},
		recordCase{name: "put/no addition is lost", run: recordCounter},
		recordCase{name: "put/one of many makes it", run: recordMadeOnce},
		recordCase{name: "put/what is out of bounds", run: recordBounds},
		recordCase{name: "delete/only the version that was read", run: recordDeletes},
		recordCase{name: "versions/none comes again", run: recordVersions},
		recordCase{name: "list/every record once", run: recordPages},
		recordCase{name: "list/within bounds", run: recordBetween},
		recordCase{name: "list/what stays is there once beside what changes", run: recordPagesMoving},
		recordCase{name: "list/pages are bounded in bytes", run: recordPageBytes},
		recordCase{name: "watch/every change is told", run: recordWatch},
		recordCase{name: "contexts/one that has ended does nothing", run: recordContextEnded},
	)
}

func recordKey(id string) store.RecordKey {
	return store.RecordKey{Kind: "note", Tenant: "acme", ID: id}
}

func recordPut(id, value string, version uint64) store.RecordPut {
	return store.RecordPut{RecordKey: recordKey(id), Value: []byte(value), Version: version}
}

// records returns A for even numbers and B for odd ones.
func (t *recordTrial) records(i int) store.RecordStore {
	if i%2 == 0 {
		return t.RecordClients.A
	}
	return t.RecordClients.B
}

func (t *recordTrial) put(s store.RecordStore, p store.RecordPut) uint64 {
	t.Helper()
	version, err := s.Put(t.ctx, p)
	if err != nil || version == 0 {
		t.Fatalf("Put(%v over %d) = %d, %v", p.RecordKey, p.Version, version, err)
	}
	return version
}

// wantRecord checks what is under a key, as the client sees it.
func (t *recordTrial) wantRecord(s store.RecordStore, id, value string, version uint64) {
	t.Helper()
	got, err := s.Get(t.ctx, recordKey(id))
	want := store.Record{RecordKey: recordKey(id), Value: []byte(value), Version: version}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("Get(%s): %v (-want +got):\n%s", id, err, diff)
	}
}

func (t *recordTrial) wantNone(s store.RecordStore, id string) {
	t.Helper()
	if r, err := s.Get(t.ctx, recordKey(id)); !t.is(err, lock.NotFound) {
		t.Errorf("Get(%s) = %+v, %v, want %s", id, r, err, lock.NotFound)
	}
}

// is reports whether a call ended with a code and said for certain that nothing was
// written.
func (t *recordTrial) is(err error, code lock.Code) bool {
	t.Helper()
	typed := t.typed("a call", err)
	return typed != nil && typed.Code == code && !typed.OutcomeUnknown
}

func (t *recordTrial) wantCode(doing string, err error, code lock.Code) {
	t.Helper()
	if !t.is(err, code) {
		t.Errorf("%s = %v, want %s for certain", doing, err, code)
	}
}

// all reads a list page by page.
func (t *recordTrial) all(
	s store.RecordStore,
	q store.RecordQuery,
) (all []store.Record, pages int) {
	t.Helper()
	for pages = 1; ; pages++ {
		page, err := s.List(t.ctx, q)
		if err != nil {
			t.Fatalf("List(%+v): %v", q, err)
		}
		if q.Limit > 0 && len(page.Records) > q.Limit {
			t.Errorf("a page has %d records, more than %d", len(page.Records), q.Limit)
		}
		all = append(all, page.Records...)
		if page.Next == "" {
			return all, pages
		}
		if q.After = page.Next; pages > 10_000 {
			t.Fatal("a list does not end")
		}
	}
}
