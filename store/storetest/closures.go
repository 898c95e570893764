package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func closureCases() []testCase {
	all := []testCase{
		{name: "closures/an entry joins by their version alone", run: closuresCompared},
		{name: "closures/a retry joins its first attempt", run: closuresRetry},
		{name: "closures/of one tenant leave others alone", run: closuresOfOthers},
	}
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(all, testCase{
			name: "cut/" + string(f) + "/no entry joins after a closure",
			run:  func(t *trial) { cutClosures(t, f) }, needs: cut,
		})
	}
	return all
}

// putClosures puts the record of the tenant's closures in place of a version, and returns its own.
func (t *trial) putClosures(s store.Store, version uint64) uint64 {
	t.Helper()
	v, err := t.Records(s).Put(t.ctx, store.RecordPut{
		RecordKey: store.ClosuresKey(t.tenant), Value: []byte("closures"), Version: version,
	})
	if err != nil {
		t.Fatalf("put the closures: %v", err)
	}
	return v
}

// wantShut checks that an entry that was admitted by a version is not written.
func (t *trial) wantShut(s store.Store, e *lock.Entry, version uint64) {
	t.Helper()
	e.Admitted = version
	_, _, err := s.Enqueue(t.ctx, clone(e))
	if t.wantUnavailable("Enqueue", err) || !errors.Is(err, store.ErrClosuresChanged) {
		t.Errorf("Enqueue of what was admitted by version %d = %v", version, err)
	}
}

func closuresCompared(t *trial) {
	drafts := func() []*lock.Entry {
		async := t.draft("a")
		async.Async = true
		return []*lock.Entry{t.draft("a"), t.draft("a", "b"), t.repeatable("b"), async}
	}
	var joined []*lock.Entry
	versions := []uint64{0}
	compare := func(now uint64) {
		t.Helper()
		for i := range 2 { // B has seen nothing of what A did
			for _, e := range drafts() {
				for _, other := range versions {
					if other != now {
						t.wantShut(t.client(i+1), e, other)
					}
				}
				e.Admitted = now
				placed := t.enqueue(t.client(i+1), e)
				if placed.Admitted != 0 {
					t.Errorf("the entry that stands says by which version it was admitted")
				}
				joined = append(joined, placed)
			}
		}
		versions = append(versions, now)
	}
	compare(0)
	first := t.putClosures(t.A, 0)
	compare(first)
	second := t.putClosures(t.A, first)
	compare(second)
	if err := t.Records(t.A).Delete(t.ctx, store.ClosuresKey(t.tenant), second); err != nil {
		t.Fatal(err)
	}
	versions = versions[1:]
	compare(0)
	for _, name := range []string{"a", "b"} {
		in := slices.DeleteFunc(slices.Clone(joined), func(e *lock.Entry) bool {
			return !slices.ContainsFunc(e.Claims, func(c lock.Claim) bool { return c.Name == name })
		})
		t.wantQueue(t.A, t.ref(name), in...)
	}
}

// closuresRetry repeats requests whose entries joined before a closure, or ended.
func closuresRetry(t *trial) {
	draft, ended := t.repeatable("a"), t.repeatable("a")
	placed := t.enqueue(t.A, draft)
	t.remove(t.A, t.enqueue(t.A, ended), lock.Released)
	t.putClosures(t.A, 0)
	for _, s := range []store.Store{t.A, t.B} {
		again, written, err := s.Enqueue(t.ctx, clone(draft))
		if err != nil || written || again.Number != placed.Number {
			t.Errorf("a retry = %+v, written %t, %v", again, written, err)
		}
		var used *lock.Error
		_, _, err = s.Enqueue(t.ctx, clone(ended))
		if !errors.As(err, &used) || used.Code != lock.Lost || used.Reason != lock.Released {
			t.Errorf("a key that is used up = %v", err)
		}
	}
	t.wantQueue(t.B, t.ref("a"), placed)
}

// closuresOfOthers has a tenant whose closures have changed write together with others.
func closuresOfOthers(t *trial) {
	t.warmUp(t.draft)
	t.putClosures(t.A, 0)
	var errs [400]error
	together(len(errs), func(i int) { // of many tenants
		tenant := t.tenant
		if i%3 > 0 {
			tenant = fmt.Sprint("other-", i)
		}
		_, _, errs[i] = t.B.Enqueue(t.ctx, draft(tenant, []string{"a", "b", "c"}[i/3%3]))
	})
	for i, err := range errs {
		switch {
		case i%3 == 0 && !errors.Is(err, store.ErrClosuresChanged):
			t.Errorf("Enqueue for the tenant that was closed = %v", err)
		case i%3 > 0 && err != nil:
			t.Errorf("Enqueue for another tenant = %v", err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		t.wantQueue(t.A, t.ref(name))
	}
}

// cutClosures has a client send writes while it is cut off, and closes the locks meanwhile. What
// was sent may arrive when the client is no longer cut off, and has joined before the closure then,
// or never will.
func cutClosures(t *trial, how Fault) {
	t.warmUp(t.draft)
	restore := t.CutB(t.T, how)
	var version uint64
	together(17, func(i int) {
		if i == 16 {
			<-time.After(t.CallLimit / 10)
			version = t.putClosures(t.A, 0)
			return
		}
		e := t.draft("a")
		if i%2 == 0 {
			e = t.repeatable("a")
		}
		_, _, err := t.B.Enqueue(t.ctx, e)
		t.wantUnavailable("Enqueue", err)
	})
	restore()
	t.eventually(t.recovery(), "the client works again", func() bool {
		e := t.draft("b")
		e.Admitted = version
		_, _, err := t.B.Enqueue(t.ctx, e)
		return err == nil
	})
	for range 64 { // over all that the client has, behind what was late
		e := t.draft("b")
		e.Admitted = version
		t.enqueue(t.B, e)
	}
	for _, e := range t.queue(t.A, t.ref("a")) {
		if e.Number > version {
			t.Errorf("an entry joined at %d, after the closure at %d", e.Number, version)
		}
	}
}
