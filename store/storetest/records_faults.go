package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// recordCutCalls checks every call of a client that was cut off.
func recordCutCalls(t *recordTrial, how Fault) {
	b := t.records(1)
	version := t.put(b, recordPut("r", "one", 0))
	removed := t.put(b, recordPut("removed", "one", 0))
	restore := t.CutB(t.T, how)
	calls := map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { return errorOf(b.Get(ctx, recordKey("r"))) },
		"List": func(ctx context.Context) error {
			return errorOf(b.List(ctx, store.RecordQuery{Kind: "note"}))
		},
		"Put": func(ctx context.Context) error {
			return errorOf(b.Put(ctx, recordPut("r", "two", version)))
		},
		"Delete": func(ctx context.Context) error { return b.Delete(ctx, recordKey("removed"), removed) },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		for _, allowed := range []time.Duration{t.CallLimit + 2*busy, 300 * time.Millisecond} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.ctx, allowed)
				defer cancel()
				start := time.Now()
				t.wantUnavailable(name, call(ctx))
				t.wantSoon(name, start, min(allowed, t.CallLimit))
			})
		}
	}
	all.Wait()
	restore()
	t.eventually(
		t.recovery(), "calls work again",
		func() bool { return calls["Get"](t.ctx) == nil && calls["List"](t.ctx) == nil },
	)
}

// attempted is what was said of the writes of one record.
type attempted struct {
	id      string
	sum     int    // what was added for certain
	unknown int    // what may have been added besides
	version uint64 // that the feed reported last
}

// recordCutOutcomes cuts the client while it makes records and adds to them, and
// holds what it said of each write against what happened.
func recordCutOutcomes(t *recordTrial, how Fault) {
	var steps atomic.Int32
	warm, restore := make(chan struct{}), make(chan func(), 1)
	go func() {
		select {
		case <-warm:
		case <-t.ctx.Done():
		}
		restore <- t.CutB(t.T, how)
	}()
	const workers = 8
	all := make([]attempted, workers)
	together(workers, func(worker int) {
		a := &all[worker]
		a.id = fmt.Sprint("r", worker)
		for t.addTo(a) {
			if steps.Add(1) == 40 {
				close(warm)
			}
		}
	})
	if steps.Load() < 40 {
		t.Fatal("the client stopped before it was cut off")
	}
	(<-restore)()
	t.eventually(t.recovery(), "the client works again", func() bool {
		return errorOf(t.records(1).List(t.ctx, store.RecordQuery{Kind: "note"})) == nil
	})
	for i := range all {
		t.checkSum(&all[i])
	}
}

// addTo adds one to a record, or deletes it and starts again with what it was and one
// more. It reports whether that is certain.
func (t *recordTrial) addTo(a *attempted) bool {
	start := time.Now()
	version, err := t.records(1).Put(t.ctx, recordPut(a.id, strconv.Itoa(a.sum+1), a.version))
	t.wantSoon("Put", start, t.CallLimit)
	if err == nil {
		a.sum, a.version = a.sum+1, version
		return true
	}
	if t.wantUnavailable("Put", err) {
		a.unknown = 1
	}
	return false
}

// checkSum reads a record through the client that was not cut, until it has settled,
// and adds to it again.
func (t *recordTrial) checkSum(a *attempted) {
	r, err := t.records(0).Get(t.ctx, recordKey(a.id))
	sum, version := 0, uint64(0)
	if err == nil {
		sum, _ = strconv.Atoi(string(r.Value))
		version = r.Version
	} else if !t.is(err, lock.NotFound) {
		t.Fatal(err)
	}
	if sum < a.sum || sum > a.sum+a.unknown {
		t.Errorf("%s is %d, but %d was said, and perhaps %d more", a.id, sum, a.sum, a.unknown)
	}
	if sum == a.sum && version != a.version {
		t.Errorf("%s has version %d, but %d was said", a.id, version, a.version)
	}
	// What may yet come is only what was sent over the version before.
	next, err := t.records(0).Put(t.ctx, recordPut(a.id, "done", version))
	if err == nil {
		t.wantRecord(t.records(1), a.id, "done", next)
	} else if a.unknown == 0 || sum != a.sum {
		t.Errorf("Put over what is there = %v", err)
	}
}

// recordCutWatch changes records behind the back of a client that is cut off.
func recordCutWatch(t *recordTrial, how Fault) {
	told, _ := t.watch(t.ctx, t.records(1))
	t.eventually(t.recovery(), "the watch begins", func() bool { return told.Load() > 0 })
	restore := t.CutB(t.T, how)
	version := t.put(t.records(0), recordPut("r", "one", 0))
	if err := t.records(0).Delete(t.ctx, recordKey("r"), version); err != nil {
		t.Fatal(err)
	}
	t.eventually(t.recovery(), "the client notices that it is cut off", func() bool {
		ctx, cancel := context.WithTimeout(t.ctx, time.Second)
		defer cancel()
		return errorOf(t.records(1).Get(ctx, recordKey("r"))) != nil
	})
	before := told.Load()
	restore()
	t.eventually(2*t.recovery(), "the change is told", func() bool { return told.Load() > before })
	before = told.Load()
	t.put(t.records(0), recordPut("r", "two", 0))
	t.eventually(t.recovery(), "the next change is told", func() bool { return told.Load() > before })
}

func bound(id, value string, version uint64) store.RecordPut {
	p := recordPut(id, value, version)
	p.Bound = true
	return p
}

// lifeEnd is when the record of a replica that stopped must be gone, on a busy machine.
const lifeEnd = store.RecordLife + store.RecordLifeLate + 10*time.Second

func recordLifeEnds(t *recordTrial) {
	told, _ := t.watch(t.ctx, t.records(0))
	t.put(t.records(1), bound("dies", "one", 0))
	own := t.put(t.records(0), bound("lives", "one", 0))
	lasting := t.put(t.records(1), recordPut("lasts", "one", 0))
	before := told.Load()
	restore := t.CutB(t.T, Silent)
	t.eventually(
		lifeEnd, "the record ends",
		func() bool { return t.is(errorOf(t.records(0).Get(t.ctx, recordKey("dies"))), lock.NotFound) },
	)
	t.eventually(t.recovery(), "its end is told", func() bool { return told.Load() > before })
	t.wantRecord(t.records(0), "lives", "one", own)
	t.wantRecord(t.records(0), "lasts", "one", lasting)
	restore()
	t.eventually(t.recovery(), "the replica comes back", func() bool {
		return errorOf(t.records(1).Put(t.ctx, bound("dies", "two", 0))) == nil
	})
	if all, _ := t.all(t.records(0), store.RecordQuery{Kind: "note"}); len(all) != 3 {
		t.Errorf("there are %d records, want 3", len(all))
	}
}

func recordLifeLasts(t *recordTrial) {
	first := t.put(t.records(0), bound("a", "one", 0))
	second := t.put(t.records(1), bound("b", "one", 0))
	until(time.Now().Add(store.RecordLife+store.RecordLifeLate), 500*time.Millisecond, func() {
		t.wantRecord(t.records(1), "a", "one", first)
		t.wantRecord(t.records(0), "b", "one", second)
	})
}

// recordLifeClosed closes a client: what is bound to it is gone at once.
func recordLifeClosed(t *recordTrial) {
	told, _ := t.watch(t.ctx, t.records(0))
	t.put(t.records(1), bound("dies", "one", 0))
	lasting := t.put(t.records(1), recordPut("lasts", "one", 0))
	before := told.Load()
	t.CloseB()
	t.wantNone(t.records(0), "dies")
	t.wantRecord(t.records(0), "lasts", "one", lasting)
	t.eventually(t.recovery(), "it is told", func() bool { return told.Load() > before })
	t.put(t.records(0), recordPut("dies", "another's", 0))
}

// recordRebound binds what was not bound, the other way round, and to another replica.
func recordRebound(t *recordTrial) {
	kept := t.put(t.records(0), recordPut("kept", "two", t.put(t.records(1), bound("kept", "one", 0))))
	taken := t.put(t.records(0), bound("taken", "two", t.put(t.records(1), bound("taken", "one", 0))))
	t.put(t.records(1), bound("goes", "two", t.put(t.records(0), recordPut("goes", "one", 0))))
	if err := t.records(0).Delete(
		t.ctx, recordKey("made"), t.put(t.records(1), bound("made", "one", 0)),
	); err != nil {
		t.Fatal(err)
	}
	made := t.put(t.records(0), recordPut("made", "two", 0))
	t.CloseB()
	t.wantRecord(t.records(0), "kept", "two", kept)
	t.wantRecord(t.records(0), "taken", "two", taken)
	t.wantRecord(t.records(0), "made", "two", made)
	t.wantNone(t.records(0), "goes")
}

// recordsLostPast restores a backup under running clients. What they know of versions
// is of a past that is missing, and the same versions would come again.
func recordsLostPast(t *recordTrial) {
	t.put(t.records(0), recordPut("r", "one", 0))
	restore := t.Backup(t.T)
	version := uint64(0)
	for i := range 5 {
		version = t.put(t.records(i), recordPut(fmt.Sprint("other", i), "x", 0))
	}
	restore(t.T)
	for i := range 2 {
		t.eventually(t.recovery(), "the store is reached again and distrusted", func() bool {
			r, err := t.records(i).Get(t.ctx, recordKey("r"))
			if err != nil {
				return false
			}
			_, err = t.records(i).Put(t.ctx, recordPut("r", "two", r.Version))
			if err == nil {
				t.Fatalf("a record was written, although version %d was handed out before", version)
			}
			typed := t.typed("Put", err)
			return typed != nil && errors.Is(typed, lock.StoreUnavailable) && !typed.OutcomeUnknown
		})
	}
}
