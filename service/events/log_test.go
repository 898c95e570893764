package events_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/bubble"
)

// feed adds to a log as a view does.
type feed struct {
	*events.Log
	t      *testing.T
	number uint64
}

func newFeed(t *testing.T, cfg events.Config) *feed {
	f := &feed{Log: events.NewLog(cfg), t: t, number: 100}
	t.Cleanup(f.Close)
	f.Begin(f.number)
	f.settle()
	return f
}

// settle waits until everything is filed. It is for use under synctest.
func (f *feed) settle() {
	f.t.Helper()
	for range 3 {
		<-time.After(events.Pace)
		synctest.Wait()
	}
	if told := f.Filed(); told != f.number {
		f.t.Fatalf("told up to %d, want %d", told, f.number)
	}
}

// write is one write with an event for each of the tenants.
func (f *feed) write(tenants ...string) (ids []lock.EventID) {
	f.number++
	for i, tenant := range tenants {
		e := &lock.Entry{
			ID: lock.ID(fmt.Sprint(f.number)), Tenant: tenant, Number: f.number,
			Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
		}
		id := lock.EventID{Number: f.number, Index: uint32(i + 1)}
		f.Add(lock.Event{ID: id, Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
		ids = append(ids, id)
	}
	f.Reached(f.number)
	return ids
}

func (f *feed) subscribe(req events.Request) *reader {
	f.t.Helper()
	if req.Of == "" {
		req.Of = "reader"
	}
	s, err := f.Subscribe(req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(s.Close)
	return &reader{Subscription: s, room: make([]*events.Record, 8)}
}

// reader keeps what it was given.
type reader struct {
	*events.Subscription
	room   []*events.Record
	told   []string // ids, and what was missed in brackets
	ids    []lock.EventID
	missed []events.Missed
	more   <-chan struct{}
}

// read takes all that there is, in at most n pieces, and returns what it got so far.
func (r *reader) read(n int) []string {
	for range n {
		given, missed, more := r.Next(r.room)
		if r.more = more; more != nil {
			break
		}
		for _, rec := range given {
			r.told, r.ids = append(r.told, rec.ID.String()), append(r.ids, rec.ID)
		}
		if missed != nil {
			r.told, r.missed = append(r.told, fmt.Sprintf("(%v %v)", missed.After, missed.Before)), append(
				r.missed, *missed,
			)
		}
	}
	return r.told
}

func (r *reader) wants(t *testing.T, want string) {
	t.Helper()
	if diff := cmp.Diff(
		strings.Fields(want), strings.Fields(strings.Join(r.read(1000), " ")),
	); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestFollow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		f.write("a")
		f.settle()
		all, a, b := f.subscribe(events.Request{}), f.subscribe(events.Request{Tenant: "a"}), f.subscribe(
			events.Request{Tenant: "b"},
		)
		for _, r := range []*reader{all, a, b} {
			r.wants(t, "")
		}
		f.write("a", "b", "a")
		f.settle()
		select {
		case <-a.more:
		default:
			t.Error("the follower is not woken")
		}
		all.wants(t, "102-1 102-2 102-3")
		a.wants(t, "102-1 102-3")
		b.wants(t, "102-2")
		f.write("b")
		f.settle()
		select {
		case <-a.more:
			t.Error("the follower is woken for another tenant's events")
		default:
		}
		a.wants(t, "102-1 102-3")
		b.wants(t, "102-2 103-1")
		if at := a.At(); at != lock.Before(104) {
			t.Errorf("a quiet follower is at %v, want 104-0", at)
		}
		after := lock.EventID{Number: 102, Index: 1}
		f.subscribe(events.Request{After: &after}).wants(t, "102-2 102-3 103-1")
		f.subscribe(events.Request{After: &after, Tenant: "a"}).wants(t, "102-3")
		f.subscribe(events.Request{After: &after, Tenant: "c"}).wants(t, "")
		early, future := lock.EventID{Number: 99, Index: 7}, lock.EventID{Number: 104, Index: 1}
		f.subscribe(events.Request{After: &early}).wants(t, "(99-7 101-0) 101-1 102-1 102-2 102-3 103-1")
		f.subscribe(events.Request{After: &future, Tenant: "a", Strange: true}).
			wants(t, "(104-1 101-0) 101-1 102-1 102-3")
		ahead := f.subscribe(events.Request{After: &future})
		f.write("a", "a")
		f.settle()
		ahead.wants(t, "104-2")
	})
}

// TestGaps: all followers miss what the feed did not report, between exact ids.
func TestGaps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		a, b := f.subscribe(events.Request{Tenant: "a"}), f.subscribe(events.Request{Tenant: "b"})
		f.write("a")
		f.Begin(f.number) // nothing was written meanwhile
		f.write("a")
		f.number += 5
		f.Begin(f.number)
		f.write("a")
		f.settle()
		a.wants(t, "101-1 102-1 (103-0 108-0) 108-1")
		b.wants(t, "(103-0 108-0)")
		f.number += 2
		f.Begin(f.number)
		f.settle()
		select {
		case <-b.more:
		default:
			t.Error("a follower is not woken for a gap")
		}
		b.wants(t, "(103-0 108-0) (109-0 111-0)")
		f.number = 50 // the store lost its past
		f.Begin(f.number)
		f.write("b")
		f.settle()
		b.wants(t, "(103-0 108-0) (109-0 111-0) (111-0 51-0) 51-1")
		if at := b.At(); at != lock.Before(52) {
			t.Errorf("it goes on after %v, want 52-0", at)
		}
		// it is given a fence floor: the ids since it was restored are those of other events, too
		f.number = 300
		f.Begin(f.number)
		f.write("b")
		f.settle()
		b.wants(t, "(103-0 108-0) (109-0 111-0) (111-0 51-0) 51-1 (52-0 301-0) 301-1")
		kept := lock.Before(40)
		f.subscribe(events.Request{Tenant: "b", After: &kept}).wants(t, "(40-0 301-0) 301-1")
		f.number += 5
		f.Begin(f.number)
		f.settle()
		b.wants(t, "(103-0 108-0) (109-0 111-0) (111-0 51-0) 51-1 (52-0 301-0) 301-1 (302-0 307-0)")
		f.subscribe(events.Request{Tenant: "b", After: &kept}).
			wants(t, "(40-0 301-0) 301-1 (302-0 307-0)")
	})
}

// TestMissedUntil: a follower that misses events learns the latest time of a missed event. After
// a gap of the feed it is the end of the gap; after dropped events it is the time of the last
// one.
func TestMissedUntil(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, began := newFeed(t, events.Config{TenantEvents: 2}), time.Now()
		later := func(minutes int) {
			<-time.After(time.Until(began.Add(time.Duration(minutes) * time.Minute)))
		}
		later(1)
		f.write("a")
		f.settle()
		later(2)
		f.number = 200
		f.Begin(f.number)
		f.settle()
		for range 2 {
			later(3)
			f.write("a")
			f.settle()
		}
		later(10)
		for tenant, want := range map[string][]int{"a": {1, 2}, "b": {0, 2}} {
			r := f.subscribe(events.Request{Tenant: tenant, After: &lock.EventID{}})
			r.read(10)
			if len(r.missed) != len(want) {
				t.Fatalf("%s misses %v", tenant, r.missed)
			}
			for i, m := range r.missed {
				if off := m.Until.Sub(
					began.Add(time.Duration(want[i]) * time.Minute),
				); off.Abs() > time.Second {
					t.Errorf("%s misses what is up to %v off minute %d", tenant, off, want[i])
				}
			}
		}
	})
}

// TestManyGaps: a feed that is interrupted again and again takes no more memory.
func TestManyGaps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		r := f.subscribe(events.Request{Tenant: "a"})
		for range 200 {
			f.write("a")
			f.number++
			f.Begin(f.number)
		}
		f.settle()
		r.read(1000)
		covers(t, r, lock.Before(101), f.number)
	})
}

// covers fails if a reader was not told of each of the writes of TestManyGaps, either way.
func covers(t *testing.T, r *reader, from lock.EventID, to uint64) {
	t.Helper()
	told := map[lock.EventID]bool{}
	for _, id := range r.ids {
		told[id] = true
	}
	for n := from.Number; n <= to; n++ {
		id := lock.EventID{Number: n, Index: 1}
		if !told[id] && !slices.ContainsFunc(r.missed, func(m events.Missed) bool {
			return m.After.Compare(id) < 0 && id.Compare(m.Before) < 0
		}) {
			t.Fatalf("%v was neither told nor said to be missed", id)
		}
	}
}

// TestSlowFollower: a follower that does not read delays no other, and learns what it missed.
func TestSlowFollower(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{TenantEvents: 10})
		slow, quick := f.subscribe(events.Request{Tenant: "a"}), f.subscribe(events.Request{Tenant: "a"})
		for range 100 {
			f.write("a")
			f.settle()
			quick.read(1)
		}
		if len(quick.ids) != 100 || len(quick.missed) > 0 {
			t.Errorf("the quick one was told %d events, and missed %v", len(quick.ids), quick.missed)
		}
		slow.wants(t, "(101-0 190-1) 191-1 192-1 193-1 194-1 195-1 196-1 197-1 198-1 199-1 200-1")
	})
}

// TestOthersFlood: whatever other tenants do, a tenant's history stays, until it has most.
func TestOthersFlood(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{Events: 300, TenantEvents: 200})
		start := f.write("victim", "victim")[0]
		for i := range 3000 {
			f.write("flood", fmt.Sprint("flood", i%3), "flood")
		}
		f.settle()
		f.subscribe(events.Request{Tenant: "victim", After: &start}).wants(t, "101-2")
		events, _, _, ok := f.Kept()
		if events > 300 || !ok {
			t.Errorf("%d events are kept, consistently: %v", events, ok)
		}
	})
}

// TestManyTenants: tenants that have one event each do not add up.
func TestManyTenants(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{Events: 100})
		for i := range 5000 {
			f.write(fmt.Sprint("t", i))
		}
		f.settle()
		if events, _, tenants, ok := f.Kept(); events != 100 || tenants != 100 || !ok {
			t.Errorf("%d events of %d tenants are kept, consistently: %v", events, tenants, ok)
		}
		from := lock.Before(101)
		r := f.subscribe(events.Request{Tenant: "t0", After: &from})
		if r.read(1000); len(r.missed) != 1 || r.missed[0].After != from {
			t.Fatalf("told %v, want that something is missed from %v on", r.told, from)
		}
		f.subscribe(events.Request{Tenant: "t4999", After: &r.missed[0].Before}).
			wants(t, fmt.Sprint(f.number, "-1"))
	})
}

// TestOldEvents: what is old is forgotten, even where there is room.
func TestOldEvents(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		from := lock.Before(101)
		f.write("a", "b")
		<-time.After(40 * time.Minute)
		f.write("a")
		<-time.After(40 * time.Minute)
		f.write("c")
		f.settle()
		f.subscribe(events.Request{Tenant: "a", After: &from}).wants(t, "(101-0 101-1) 102-1")
		f.subscribe(events.Request{After: &from}).wants(t, "(101-0 101-2) 102-1 103-1")
		if n, _, tenants, ok := f.Kept(); n != 2 || tenants != 2 || !ok {
			t.Errorf("%d events of %d tenants are kept, consistently: %v", n, tenants, ok)
		}
	})
}

// TestBytes: large entries count for what they are.
func TestBytes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 1 << 20
		f := newFeed(t, events.Config{TenantBytes: most / 2, Bytes: most})
		for i := range 3000 {
			f.number++
			e := &lock.Entry{
				ID: "x", Tenant: fmt.Sprint("t", i%4), Number: f.number,
				Claims: []lock.Claim{{Name: strings.Repeat("a", 200)}},
			}
			e.Metadata = map[string]string{"k": strings.Repeat("v", 2000)}
			f.Add(lock.Event{
				ID: lock.EventID{Number: f.number, Index: 1}, Kind: lock.EventAcquired, Entry: e,
				At: time.Now(),
			})
			f.Reached(f.number)
		}
		f.settle()
		if n, bytes, _, ok := f.Kept(); bytes > most || bytes < most/2 || n > most/4000 || !ok {
			t.Errorf("%d events of %d bytes are kept, consistently: %v", n, bytes, ok)
		}
	})
}

// TestMoreThanIsFiled: what comes faster than it is filed is missed, and that is said.
func TestMoreThanIsFiled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 2 * events.MaxPending
		f := newFeed(
			t, events.Config{Events: most, TenantEvents: most, TenantBytes: 1 << 30, Bytes: 1 << 30},
		)
		r := f.subscribe(events.Request{Tenant: "a"})
		release := f.Hold()
		for range events.MaxPending + events.MaxPending/4 {
			f.write("a")
		}
		release()
		f.settle()
		f.write("a")
		f.settle()
		r.read(1 << 20)
		if len(r.missed) != 1 || len(r.ids) < events.MaxPending/2 {
			t.Errorf("%d told and %v missed", len(r.ids), r.missed)
		}
		covers(t, r, lock.Before(101), f.number)
	})
}

// TestDroppedEventsAreMissed: a write has more events than there is room for, and what is pending
// is filed before it ends. Its last events are not told as if nothing were missing before them.
func TestDroppedEventsAreMissed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 2 * events.MaxPending
		f := newFeed(
			t, events.Config{Events: most, TenantEvents: most, TenantBytes: 1 << 30, Bytes: 1 << 30},
		)
		r := f.subscribe(events.Request{Tenant: "a"})
		f.write("a")
		synctest.Wait() // it is filed
		f.write("a")    // so that what is pending is filed after the pause
		f.number++
		add := func(from, to int) {
			for i := from; i < to; i++ {
				e := &lock.Entry{ID: "x", Tenant: "a", Number: f.number, Claims: []lock.Claim{{Name: "a"}}}
				id := lock.EventID{Number: f.number, Index: uint32(i + 1)}
				f.Add(lock.Event{ID: id, Kind: lock.EventAcquired, Entry: e, At: time.Now()})
			}
		}
		add(0, events.MaxPending+10)
		<-time.After(2 * events.Pace)
		synctest.Wait()
		add(events.MaxPending+10, events.MaxPending+20)
		f.Reached(f.number)
		f.settle()
		r.read(1 << 20)
		lastTold := r.ids[len(r.ids)-1]
		if len(r.missed) != 1 || lastTold.Index > events.MaxPending {
			t.Errorf("%v is told last, and %v is missed", lastTold, r.missed)
		}
	})
}

// TestManyOfOneWrite: as many entries as may wait for a lock can be granted by one write, and other
// tenants miss nothing.
func TestManyOfOneWrite(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		r := f.subscribe(events.Request{Tenant: "victim"})
		release := f.Hold()
		f.number++
		for i := range uint32(quota.Standard()[quota.WaitingPerLock]) {
			e := &lock.Entry{ID: "x", Tenant: "flood", Number: f.number, Claims: []lock.Claim{{Name: "a"}}}
			f.Add(lock.Event{
				ID: lock.EventID{Number: f.number, Index: i + 1}, Kind: lock.EventAcquired, Entry: e,
				At: time.Now(),
			})
		}
		f.Reached(f.number)
		last := f.write("victim")
		release()
		f.settle()
		if r.read(10); len(r.missed) > 0 || len(r.ids) != 1 || r.ids[0] != last[0] {
			t.Errorf("told %v", r.told)
		}
	})
}

// streams are the limits of tenants that may have so many.
func streams(most int) func(string) *quota.Limits {
	limits := quota.Overrides{"event_streams": most}.Over(quota.Standard())
	return func(string) *quota.Limits { return limits }
}

// TestPlaces: a tenant has so many subscriptions, and all have so many together.
func TestPlaces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{Subscriptions: 5, Limits: streams(2)})
		first := f.subscribe(events.Request{Of: "a"})
		f.subscribe(events.Request{Of: "a"})
		refused := func(of string, code lock.Code) {
			t.Helper()
			_, err := f.Subscribe(events.Request{Of: of})
			var e *lock.Error
			if !errors.As(err, &e) || e.Code != code || e.RetryAfter == 0 {
				t.Errorf("refused with %v, want %s", err, code)
			}
		}
		refused("a", lock.QuotaExceeded)
		f.subscribe(events.Request{Of: "b"})
		f.subscribe(events.Request{Of: "b"})
		f.subscribe(events.Request{Of: "c"})
		refused("c", lock.Overloaded)
		first.Close()
		first.Close()
		f.subscribe(events.Request{Of: "a"})
		refused("a", lock.QuotaExceeded)
	})
}

// TestPlacesAreNotTheServersOwn: however many follow for tenants, the server follows for itself, as
// the webhook sender does.
func TestPlacesAreNotTheServersOwn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{Subscriptions: 2, Limits: streams(3)})
		f.subscribe(events.Request{Of: "a"})
		f.subscribe(events.Request{Of: "b"})
		for range 3 {
			if s, err := f.Subscribe(events.Request{Of: lock.OwnTenant}); err != nil {
				t.Errorf("the server cannot follow: %v", err)
			} else {
				defer s.Close()
			}
		}
		if _, err := f.Subscribe(events.Request{Of: lock.OwnTenant}); !errors.Is(
			err, lock.QuotaExceeded,
		) {
			t.Errorf("its own are not bounded: %v", err)
		}
	})
}

// TestSpacing: with more followers, each gets more events at once; few need not wait.
func TestSpacing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{Subscriptions: 1000, Limits: streams(1000), Tellings: 1000})
		spacings := map[int]time.Duration{
			1:  0,
			20: 0,
			21: 21 * time.Millisecond,
			50: 50 * time.Millisecond,
		}
		var all []*reader
		for n := 1; n <= 50; n++ {
			all = append(all, f.subscribe(events.Request{}))
			if want, asked := spacings[n]; asked && all[0].Spacing() != want {
				t.Errorf("%d look after %v, want %v", n, all[0].Spacing(), want)
			}
		}
		for _, r := range all[20:] {
			r.Close()
		}
		if got := all[0].Spacing(); got != 0 {
			t.Errorf("those who are left look after %v", got)
		}
	})
}

// TestAwait: a follower that comes while the feed begins waits until the log has begun, and
// no follower waits for a closed log.
func TestAwait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := events.NewLog(events.Config{})
		l.Begin(100)
		l.Await(t.Context())
		if s, err := l.Subscribe(events.Request{Of: "acme", Tenant: "acme"}); err != nil {
			t.Errorf("the feed has begun, and the log not: %v", err)
		} else {
			s.Close()
		}
		l.Close()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, other := range []*events.Log{
			events.NewLog(events.Config{}), events.NewLog(events.Config{}),
		} {
			other.Await(gone)
			other.Close()
			other.Await(t.Context())
		}
	})
}

func TestNotBegun(t *testing.T) {
	l := events.NewLog(events.Config{})
	defer l.Close()
	if _, err := l.Subscribe(events.Request{Of: "a"}); !errors.Is(err, lock.StoreUnavailable) {
		t.Errorf("%v, want store_unavailable", err)
	}
}

// TestEveryEventOrItsGap: whatever is added, missed and dropped, and however followers read, each
// receives every event once and in order, or a report that it is missed. Without bounds or gaps
// nothing is missed.
func TestEveryEventOrItsGap(t *testing.T) {
	for seed := range uint64(60) {
		bubble.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			cfg, gaps := events.Config{Events: 60, TenantEvents: 25}, true
			if seed%3 == 0 {
				cfg, gaps = events.Config{}, false
			}
			f := newFeed(t, cfg)
			truth := map[lock.EventID]string{}
			tenants := []string{"a", "b", "b", "b", "c"}
			type started struct {
				*reader
				tenant string
				from   lock.EventID
			}
			var readers []started
			for range 300 {
				var write []string
				for range r.IntN(4) {
					write = append(write, tenants[r.IntN(len(tenants))])
				}
				switch r.IntN(40) {
				case 0:
					if gaps {
						f.number += r.Uint64N(3)
						if r.IntN(2) == 0 {
							f.number++
							truth[lock.EventID{Number: f.number, Index: 1}] = "a" // no follower gets it
						}
						f.Begin(f.number)
						continue
					}
				case 1, 2:
					f.settle()
					req := events.Request{Tenant: []string{"", "a", "b", "c", "d"}[r.IntN(5)]}
					from := lock.Before(f.number + 1)
					if r.IntN(2) == 0 {
						from = lock.EventID{Number: 101 + r.Uint64N(f.number-99), Index: uint32(r.IntN(3))}
						req.After = &from
					}
					readers = append(readers, started{f.subscribe(req), req.Tenant, from})
				case 3, 4, 5, 6:
					f.settle()
				}
				for i, id := range f.write(write...) {
					truth[id] = write[i]
				}
				for _, reading := range readers {
					if r.IntN(10) == 0 {
						reading.read(1 + r.IntN(3))
					}
				}
			}
			f.settle()
			for _, reading := range readers {
				reading.read(1000)
				if !slices.IsSortedFunc(reading.ids, lock.EventID.Compare) ||
					len(slices.Compact(slices.Clone(reading.ids))) != len(reading.ids) {
					t.Errorf("seed %d: told out of order, or twice: %v", seed, reading.told)
				}
				if !gaps && len(reading.missed) > 0 {
					t.Errorf("seed %d: missed %v", seed, reading.missed)
				}
				for id, tenant := range truth {
					told := slices.Contains(reading.ids, id)
					of := (reading.tenant == "" || reading.tenant == tenant) && id.Compare(reading.from) > 0
					missed := slices.ContainsFunc(
						reading.missed,
						func(m events.Missed) bool { return m.After.Compare(id) < 0 && id.Compare(m.Before) <= 0 },
					)
					if told != of && !(of && missed) {
						t.Fatalf(
							"seed %d: %v of %s: told %v to who follows %q after %v, missed %v", seed, id, tenant, told,
							reading.tenant, reading.from, reading.missed,
						)
					}
				}
			}
			if _, _, _, ok := f.Kept(); !ok {
				t.Errorf("seed %d: the counts are not what is kept", seed)
			}
		})
	}
}

// TestBackInSilence: a feed whose numbers go back without a word has lost its past, and its
// followers learn of it.
func TestBackInSilence(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		r := f.subscribe(events.Request{Tenant: "a"})
		f.write("a")
		f.write("a")
		f.settle()
		r.wants(t, "101-1 102-1")
		f.number = 50
		f.write("a")
		f.settle()
		r.wants(t, "101-1 102-1 (103-0 51-0) 51-1")
		f.write("a", "a")
		f.settle()
		r.wants(t, "101-1 102-1 (103-0 51-0) 51-1 52-1 52-2")
	})
}

// TestResumeInAnotherPast: as long as a store that went back has no fence floor, an id that it had
// reached before names two events, and a follower that comes with one learns of a gap.
func TestResumeInAnotherPast(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		for range 5 {
			f.write("a")
		}
		f.settle()
		f.number = 101
		f.Begin(f.number)
		for range 3 {
			f.write("a")
		}
		f.settle()
		before := lock.EventID{Number: 103, Index: 1}
		f.subscribe(events.Request{Tenant: "a", After: &before}).
			wants(t, "(103-1 102-0) 102-1 103-1 104-1")
		f.number = 200
		f.Begin(f.number)
		f.write("a")
		f.write("a")
		f.settle()
		after := lock.EventID{Number: 201, Index: 1}
		f.subscribe(events.Request{Tenant: "a", After: &after}).wants(t, "202-1")
	})
}

// TestAllFollow: a gap wakes a follower of all tenants, which continues to receive events after
// numbers went back.
func TestAllFollow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		f.write("a")
		f.write("b")
		f.settle()
		from := lock.Before(101)
		r := f.subscribe(events.Request{After: &from})
		r.wants(t, "101-1 102-1")
		f.number += 3
		f.Begin(f.number)
		f.settle()
		select {
		case <-r.more:
		default:
			t.Error("nobody is woken for a gap")
		}
		r.wants(t, "101-1 102-1 (103-0 106-0)")
		f.number = 50
		f.Begin(f.number)
		f.write("b")
		f.settle()
		r.wants(t, "101-1 102-1 (103-0 106-0) (106-0 51-0) 51-1")
	})
}

// TestResumeWithinAGap: a follower that resumes within a gap misses the rest of it.
func TestResumeWithinAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		f.write("a")
		f.number += 10
		f.Begin(f.number)
		f.write("a")
		f.settle()
		within := lock.EventID{Number: 105, Index: 1}
		f.subscribe(events.Request{After: &within}).wants(t, "(105-1 112-0) 112-1")
	})
}

// TestRestoredTwice: a store that went back twice has reached again what it had lost only beyond
// the greatest number that it ever showed.
func TestRestoredTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed(t, events.Config{})
		for _, number := range []uint64{300, 200, 150, 250} {
			f.number = number
			f.Begin(number)
			f.write("a")
			f.settle()
		}
		of := lock.EventID{Number: 240, Index: 1}
		f.subscribe(events.Request{Tenant: "a", After: &of}).
			wants(t, "(240-1 151-0) 151-1 (152-0 251-0) 251-1")
	})
}
