package closures_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, test func(t *testing.T, a, b *closures.Book)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		t.Cleanup(server.Close)
		test(t, replica(t, server), replica(t, server))
	})
}

func replica(t *testing.T, server *memory.Server) *closures.Book {
	t.Helper()
	client := server.Connect(nil)
	t.Cleanup(client.Close)
	return start(t, client.Records())
}

func start(t *testing.T, records store.RecordStore) *closures.Book {
	t.Helper()
	b := closures.New(closures.Config{Records: records})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	<-time.After(time.Second)
	return b
}

func request(locks string) closures.CloseRequest {
	return closures.CloseRequest{
		Tenant: "acme", Locks: locks, Until: time.Now().Add(time.Hour), Reason: "the stock is counted",
		Description: "OPS-311", By: audit.Who{Subject: "ops", Tenant: "acme"},
	}
}

// TestClosuresThatAreOverHaveABound: those that are not removed yet take space, and a tenant's
// space has a bound.
func TestClosuresThatAreOverHaveABound(t *testing.T) {
	run(t, func(t *testing.T, a, _ *closures.Book) {
		for i := range 1000 {
			req := request("a")
			req.Until, req.Description = time.Now().Add(time.Millisecond), strings.Repeat("x", 200)
			_, err := a.Close(t.Context(), req)
			if err == nil {
				<-time.After(2 * time.Millisecond)
				continue
			}
			if !errors.Is(err, lock.QuotaExceeded) || i < 100 {
				t.Errorf("the closure %d is answered %v", i, err)
			}
			return
		}
		t.Error("they have no bound")
	})
}

func claims(names ...string) (all []lock.Claim) {
	for _, name := range names {
		all = append(all, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	return all
}

func closedAt(b *closures.Book, tenant string, claims []lock.Claim) *lock.Closure {
	c, _ := b.Closed(tenant, claims)
	return c
}

func closes(t *testing.T, b *closures.Book, req closures.CloseRequest) *lock.Closure {
	t.Helper()
	made, err := b.Close(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestClosureIsKnownAtEveryReplica: within a second, until its time is over or an operator opens
// the locks.
func TestClosureIsKnownAtEveryReplica(t *testing.T) {
	run(t, func(t *testing.T, a, b *closures.Book) {
		made := closes(t, a, request("orders:*"))
		<-time.After(time.Second)
		for _, book := range []*closures.Book{a, b} {
			found := closedAt(book, "acme", claims("stock", "orders:1"))
			if found == nil || found.ID != made.ID || found.Description != "OPS-311" || found.By != "ops" {
				t.Fatalf("found %+v, want %+v", found, made)
			}
			if closedAt(book, "acme", claims("stock")) != nil ||
				closedAt(book, "other", claims("orders:1")) != nil {
				t.Error("other locks are closed too")
			}
		}
		longer := request("orders:1")
		longer.Until = time.Now().Add(2 * time.Hour)
		second := closes(t, b, longer)
		<-time.After(time.Second)
		if found := closedAt(a, "acme", claims("orders:1")); found.ID != second.ID {
			t.Errorf("of two closures %+v counts, want the one that lasts longest", found)
		}
		open := closures.OpenRequest{ID: second.ID, May: func(string, string) bool { return true }}
		if err := a.Open(t.Context(), open); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(t.Context(), open); !errors.Is(err, lock.NotFound) {
			t.Errorf("open again: %v", err)
		}
		<-time.After(time.Hour)
		if found := closedAt(b, "acme", claims("orders:1")); found != nil {
			t.Errorf("closed for longer than it says: %+v", found)
		}
	})
}

// TestClosuresThatAreOverAreRemoved: from the store, a while after their end.
func TestClosuresThatAreOverAreRemoved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		t.Cleanup(server.Close)
		b := replica(t, server)
		closes(t, b, request("a"))
		<-time.After(time.Hour + 3*time.Minute)
		client := server.Connect(nil)
		defer client.Close()
		page, err := client.Records().List(t.Context(), store.RecordQuery{Kind: store.ClosuresKind})
		if err != nil || len(page.Records) != 0 {
			t.Errorf("there are %v (%v)", page.Records, err)
		}
	})
}

// TestClosuresAreBounded: of one tenant 100 stand, and others close theirs all the same.
func TestClosuresAreBounded(t *testing.T) {
	run(t, func(t *testing.T, a, _ *closures.Book) {
		for range lock.MaxClosures {
			closes(t, a, request("a"))
		}
		if _, err := a.Close(t.Context(), request("a")); !errors.Is(err, lock.QuotaExceeded) {
			t.Errorf("one more: %v", err)
		}
		other := request("a")
		other.Tenant = "other"
		closes(t, a, other)
		all, err := a.List(t.Context(), "acme")
		if err != nil || len(all) != lock.MaxClosures {
			t.Errorf("%d are listed (%v)", len(all), err)
		}
	})
}

// TestInvalidClosures: what an operator cannot ask for.
func TestInvalidClosures(t *testing.T) {
	run(t, func(t *testing.T, a, _ *closures.Book) {
		for name, change := range map[string]func(*closures.CloseRequest){
			"a long description": func(r *closures.CloseRequest) {
				r.Description = strings.Repeat("é", 201)
			},
			"no reason":     func(r *closures.CloseRequest) { r.Reason = "short" },
			"no locks":      func(r *closures.CloseRequest) { r.Locks = "" },
			"the past":      func(r *closures.CloseRequest) { r.Until = time.Now() },
			"a week":        func(r *closures.CloseRequest) { r.Until = time.Now().Add(7 * 24 * time.Hour) },
			"our own locks": func(r *closures.CloseRequest) { r.Tenant = lock.OwnTenant },
		} {
			req := request("a")
			change(&req)
			if _, err := a.Close(t.Context(), req); !errors.Is(err, lock.InvalidRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
		long := request("a")
		long.Description = strings.Repeat("é", 200)
		closes(t, a, long)
	})
}

// TestClosuresOfOneTenantAtOnce: replicas change one record, and lose no change of each other.
func TestClosuresOfOneTenantAtOnce(t *testing.T) {
	run(t, func(t *testing.T, a, b *closures.Book) {
		const each = 5
		var all sync.WaitGroup
		for _, book := range []*closures.Book{a, b} {
			for range each {
				all.Go(func() {
					made, err := book.Close(t.Context(), request("a"))
					if err == nil {
						_, err = book.Close(t.Context(), request("b"))
					}
					if err == nil {
						err = book.Open(t.Context(), closures.OpenRequest{
							ID: made.ID, May: func(string, string) bool { return true },
						})
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		left, err := a.List(t.Context(), "acme")
		if err != nil || len(left) != 2*each {
			t.Errorf("%d closures stand, want %d (%v)", len(left), 2*each, err)
		}
	})
}

// TestClosuresAreBoundedInBytes: a tenant's long texts are refused before they fill its record.
func TestClosuresAreBoundedInBytes(t *testing.T) {
	run(t, func(t *testing.T, a, _ *closures.Book) {
		long := request("a")
		long.Description = strings.Repeat("é", 200)
		var err error
		for n := 0; err == nil && n < lock.MaxClosures; n++ {
			_, err = a.Close(t.Context(), long)
		}
		if !errors.Is(err, lock.QuotaExceeded) {
			t.Errorf("so many long texts: %v", err)
		}
	})
}

// unwatched are the records of a replica that hears of no change.
type unwatched struct{ store.RecordStore }

func (unwatched) Watch(ctx context.Context, _ string, _ func()) { <-ctx.Done() }

// TestClosureThatWasOpenedUnseen: a replica reads a closure because a write was refused, and it is
// opened before the replica reads all of them, which are then as they were at the reading before.
func TestClosureThatWasOpenedUnseen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		t.Cleanup(server.Close)
		a, client := replica(t, server), server.Connect(nil)
		t.Cleanup(client.Close)
		b := start(t, unwatched{client.Records()})
		made := closes(t, a, request("a"))
		err := b.Reread(t.Context(), "acme", 0)
		if err != nil || closedAt(b, "acme", claims("a")) == nil {
			t.Fatalf("the closure was not read (%v)", err)
		}
		err = a.Open(t.Context(), closures.OpenRequest{
			ID: made.ID, May: func(string, string) bool { return true },
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if found := closedAt(b, "acme", claims("a")); found != nil {
			t.Errorf("still closed by %+v", found)
		}
	})
}

// TestDamagedRecordIsNotChanged: a closure that one version cannot read may still hold at another.
// So no change writes over it, and no entry is admitted by the part that can be read.
func TestDamagedRecordIsNotChanged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		t.Cleanup(server.Close)
		b := replica(t, server)
		made := closes(t, b, request("a"))
		client := server.Connect(nil)
		defer client.Close()
		records, key := client.Records(), store.ClosuresKey("acme")
		was, err := records.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		damaged := was.Value[:len(was.Value)-1]
		damaged = append(damaged, `,{"id":"x","locks":"a**b","until_ms":1}]`...)
		version, err := records.Put(
			t.Context(), store.RecordPut{RecordKey: key, Version: was.Version, Value: damaged},
		)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		_, closeErr := b.Close(t.Context(), request("b"))
		_, known := b.Closed("acme", nil)
		for what, err := range map[string]error{
			"close": closeErr,
			"open": b.Open(t.Context(), closures.OpenRequest{
				ID: made.ID, May: func(string, string) bool { return true },
			}),
			"admit": b.Reread(t.Context(), "acme", known),
		} {
			e, is := errors.AsType[*lock.Error](err)
			if !is || e.Code != lock.StoreUnavailable || !strings.Contains(e.Detail, "acme") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, known = b.Closed("acme", nil); known == version {
			t.Error("entries are admitted by a damaged record")
		}
		if is, err := records.Get(t.Context(), key); err != nil || is.Version != version {
			t.Errorf("the record is %q (%v)", is.Value, err)
		}
		other := request("a")
		other.Tenant = "other"
		closes(t, b, other)
	})
}
