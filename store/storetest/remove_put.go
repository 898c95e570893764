package storetest

import (
	"fmt"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// removePutCases are about a removal and the put of a small record in one write.
func removePutCases() []testCase {
	all := []testCase{
		{name: "remove and put/both happen, at one number", run: removePutBoth},
		{name: "remove and put/or neither", run: removePutNeither},
		{name: "remove and put/of many at once one succeeds, and leaves one record", run: removePutRace},
		{name: "remove and put/what was said of an end is remembered", run: removePutRemembered},
	}
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(all, testCase{
			name: "cut/" + string(f) + "/a removal and its record are not parted",
			run:  func(t *trial) { cutRemovePut(t, f) }, needs: cut,
		})
	}
	return all
}

func noteOf(i int) *lock.Note {
	return &lock.Note{By: "operator", Reason: fmt.Sprint("the node died: <", i, "> & is \"gone\"")}
}

// recordThere reads the record with the id as client s sees it, nil if there is none.
func (t *trial) recordThere(s store.Store, id string) *store.Record {
	t.Helper()
	r, err := t.Records(s).Get(t.ctx, recordKey(id))
	if typed := t.typed("Get", err); typed != nil {
		if typed.Code != lock.NotFound {
			t.Fatalf("Get(%s): %v", id, err)
		}
		return nil
	}
	return &r
}

func removePutBoth(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	entries := []*lock.Entry{
		t.enqueue(t.A, t.draft("a")), t.enqueue(t.B, t.repeatable("a")),
		t.enqueue(t.A, t.draft("b", "c", "d")), t.enqueue(t.A, t.draft("renewed")),
	}
	if err := t.B.Renew(t.ctx, entries[3]); err != nil {
		t.Fatal(err)
	}
	over, err := t.Records(t.A).Put(t.ctx, recordPut("over", "one", 0))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		put := recordPut(fmt.Sprint("r", i), "removed", 0)
		if i == 1 {
			put = recordPut("over", "removed", over)
		}
		if err := t.client(i).RemoveAndPut(t.ctx, e, lock.Revoked, noteOf(i), put); err != nil {
			t.Fatalf("RemoveAndPut: %v", err)
		}
		t.settle(feeds...)
		for j, f := range feeds {
			r, v := t.recordThere(t.client(i+j+1), put.ID), f.state()
			if r == nil || string(r.Value) != "removed" {
				t.Fatalf("the record beside the removal is %+v", r)
			}
			n, d := v.departures(e.ID)
			if v.whole() &&
				(n != 1 || d.Reason != lock.Revoked || d.number != r.Version || !cmp.Equal(d.note, noteOf(i))) {
				t.Errorf("left %d times, last %+v; the record has version %d", n, d, r.Version)
			}
		}
		t.wantPlaces(t.client(i+1), e, false)
	}
}

// removePutNeither asks for what cannot be done: the entry is gone or another one, or the
// record is not as it is said to be.
func removePutNeither(t *trial) {
	kept, gone := t.enqueue(t.A, t.repeatable("a")), t.enqueue(t.B, t.draft("a"))
	t.remove(t.A, gone, lock.Released)
	version, err := t.Records(t.B).Put(t.ctx, recordPut("there", "one", 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		s := t.client(i)
		forged := forgeries(kept)
		forged["a removed entry"] = gone
		for what, e := range forged {
			t.wantLost(
				"RemoveAndPut of "+what, s.RemoveAndPut(t.ctx, e, lock.Revoked, nil, recordPut("none", "x", 0)),
			)
			t.wantLost(
				"RemoveAndPut of "+what,
				s.RemoveAndPut(t.ctx, e, lock.Revoked, nil, recordPut("there", "x", version)),
			)
		}
		for _, c := range []struct {
			what string
			put  store.RecordPut
			code lock.Code
		}{
			{"with a record that is there", recordPut("there", "x", 0), lock.Changed},
			{"with an unknown version", recordPut("there", "x", version+1), lock.Changed},
			{"over a record that is not there", recordPut("none", "x", version), lock.NotFound},
			{"with a key out of bounds", recordPut("a/b", "x", 0), lock.InvalidRequest},
			{
				"with a bound record",
				store.RecordPut{RecordKey: recordKey("none"), Bound: true},
				lock.InvalidRequest,
			},
		} {
			err := s.RemoveAndPut(t.ctx, kept, lock.Revoked, noteOf(i), c.put)
			if typed := t.typed("RemoveAndPut", err); typed == nil || typed.Code != c.code ||
				typed.OutcomeUnknown {
				t.Errorf("RemoveAndPut %s = %v, want %s", c.what, err, c.code)
			}
		}
	}
	if r := t.recordThere(t.A, "none"); r != nil {
		t.Errorf("a record was put: %+v", r)
	}
	if r := t.recordThere(t.A, "there"); r == nil || r.Version != version {
		t.Errorf("the record has changed: %+v", r)
	}
	t.wantQueue(t.A, t.ref("a"), kept)
}

// removePutRace has removals with records meet each other and plain ones.
func removePutRace(t *trial) {
	for round := range 15 {
		e := t.enqueue(t.A, t.draft("a"))
		var removed, put atomic.Int32
		together(8, func(i int) {
			var err error
			if i < 6 {
				if err = t.client(i).RemoveAndPut(
					t.ctx, e, lock.Revoked, nil, recordPut(fmt.Sprint("r", round, "-", i), "x", 0),
				); err == nil {
					put.Add(1)
				}
			} else {
				err = t.client(i).Remove(t.ctx, e, lock.Released)
			}
			if err != nil {
				t.wantLost("RemoveAndPut", err)
				return
			}
			removed.Add(1)
		})
		there := int32(0)
		for i := range 6 {
			if t.recordThere(t.B, fmt.Sprint("r", round, "-", i)) != nil {
				there++
			}
		}
		if removed.Load() != 1 || there != put.Load() {
			t.Fatalf(
				"%d removals succeeded, %d with a record, and %d records are there", removed.Load(), put.Load(),
				there,
			)
		}
	}
}

func removePutRemembered(t *trial) {
	want := map[lock.ID]*lock.Note{}
	for i := range 4 {
		e := t.enqueue(t.client(i), t.draft("a"))
		if want[e.ID] = noteOf(i); i == 3 {
			want[e.ID] = nil
		}
		if err := t.client(i/2).RemoveAndPut(
			t.ctx, e, lock.Revoked, want[e.ID], recordPut(fmt.Sprint("r", i), "x", 0),
		); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range t.follow(t.Reopen(t.T)).state().ended {
		if note, ok := want[end.ID]; !ok || end.Reason != lock.Revoked || !cmp.Equal(note, end.Note) {
			t.Errorf("%s is remembered as %q with %+v, want %+v", end.ID, end.Reason, end.Note, note)
		}
		delete(want, end.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d ends are not remembered", len(want))
	}
}

// cutRemovePut cuts the client while it removes entries, each with a record, and holds what
// it said of each against what happened.
func cutRemovePut(t *trial, how Fault) {
	const workers = 6
	var steps atomic.Int32
	warm, restore := make(chan struct{}), make(chan func(), 1)
	go func() {
		select {
		case <-warm:
		case <-t.ctx.Done():
		}
		restore <- t.CutB(t.T, how)
	}()
	type attempt struct {
		entry *lock.Entry
		err   error
	}
	var all [workers][]attempt
	together(workers, func(worker int) {
		for err := error(nil); err == nil; {
			e := t.enqueue(t.A, t.draft(fmt.Sprint("w", worker)))
			err = t.B.RemoveAndPut(t.ctx, e, lock.Revoked, noteOf(worker), recordPut(string(e.ID), "x", 0))
			if all[worker] = append(all[worker], attempt{e, err}); steps.Add(1) == 30 {
				close(warm)
			}
		}
	})
	if steps.Load() < 30 {
		t.Fatal("the client stopped before it was cut off")
	}
	(<-restore)()
	t.eventually(t.recovery(), "the client works again", func() bool {
		_, err := t.B.Newest(t.ctx)
		return err == nil
	})
	for _, attempts := range all {
		for _, a := range attempts {
			ambiguous := a.err != nil && t.wantUnavailable("RemoveAndPut", a.err)
			put := t.recordThere(t.A, string(a.entry.ID)) != nil
			there := lock.Place(t.queue(t.A, t.ref(a.entry.Name())), a.entry.ID) >= 0
			if ambiguous && !put && !there { // it happened between the two looks
				put = t.recordThere(t.A, string(a.entry.ID)) != nil
			}
			if put == there || !ambiguous && put != (a.err == nil) {
				t.Errorf("it said %v; the entry is there: %t, the record: %t", a.err, there, put)
			}
		}
	}
}
