package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

func ref(name string) lock.Ref { return lock.Ref{Tenant: "acme", Name: name} }

// see looks at a lock.
func (r *replica) see(name string) *service.LockView {
	r.t.Helper()
	v, err := r.Lock(r.t.Context(), ref(name), false, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func TestLock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		if v := r.see("orders:1"); len(v.Holders) != 0 || len(v.Waiters) != 0 || v.Waiting != 0 ||
			v.Newest != 0 || v.Revision != 100 {
			t.Errorf("a free lock: %+v", v)
		}
		began := time.Now()
		g := r.hold(want("orders:1", 0))
		var line []*pending
		for range 3 {
			after(time.Second)
			line = append(line, r.line(want("orders:1", time.Minute)))
		}
		after(time.Second)
		v := r.see("orders:1")
		if h := v.Holders; len(h) != 1 || h[0].Entry.ID != g.Entry.ID || !h[0].Since.Equal(began) ||
			!h[0].ExpiresAt.Equal(g.ExpiresAt) {
			t.Errorf("holders %+v", h)
		}
		if v.Waiting != 3 || v.Newest != g.Entry.Number || v.Revision != s.Number() {
			t.Errorf("%+v", v)
		}
		for i, w := range v.Waiters {
			if w.Position != i+1 || w.Waited != time.Duration(3-i)*time.Second ||
				w.Entry.Number != g.Entry.Number+uint64(i)+1 {
				t.Errorf("waiter %d: %+v", i, w)
			}
		}
		line[1].cancel()
		synctest.Wait()
		if v := r.see("orders:1"); v.Waiting != 2 || v.Waiters[1].Position != 2 {
			t.Errorf("after one left: %+v", v)
		}
		if v, err := r.Lock(
			t.Context(), lock.Ref{Tenant: "globex", Name: "orders:1"}, false, nil,
		); err != nil || v.Waiting+len(v.Holders) != 0 {
			t.Errorf("another tenant sees %+v, %v", v, err)
		}
	})
}

// TestPosition: every answer gives the same position among the waiters.
func TestPosition(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		late := s.replica(t, func(c *service.Config) { c.MaxHold = time.Second })
		holder := r.hold(lasting(want("orders:1", 0)))
		var line []*service.Grant
		for i := range 3 {
			g := r.line(lasting(want("orders:1", time.Hour))).stillWaits()
			if line = append(line, g); g.Position != i+1 {
				t.Errorf("waiter %d is told position %d", i, g.Position)
			}
		}
		r.release(line[0])
		if g := r.renew(line[2]); g.Position != 2 || g.Held {
			t.Errorf("renewed: %+v", g)
		}
		r.release(holder)
		if g := r.renew(line[1]); g.Position != 0 || !g.Held {
			t.Errorf("renewed: %+v", g)
		}
		late.store.setFeed(frozen) // it cannot tell which place, but not none
		if g := late.start(want("orders:1", time.Hour)).stillWaits(); g.Position < 1 {
			t.Errorf("position %d", g.Position)
		}
	})
}

// TestConsistentLook waits for what happened before it.
func TestConsistentLook(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.setLag(running, time.Second)
		s.occupy(t, "orders:1")
		began := time.Now()
		list := view.ListRequest{Tenant: "acme", Limit: 10}
		if p, err := r.List(t.Context(), service.ListRequest{ListRequest: list}); err != nil ||
			len(p.Locks) != 0 || p.Revision != 100 {
			t.Errorf("%+v, %v", p, err)
		}
		took(t, began, 0)
		if p, err := r.List(
			t.Context(), service.ListRequest{ListRequest: list, Consistent: true},
		); err != nil || len(p.Locks) != 1 || p.Revision != 101 {
			t.Errorf("%+v, %v", p, err)
		}
		took(t, began, time.Second)
		s.occupy(t, "orders:2")
		if v, err := r.Lock(t.Context(), ref("orders:2"), true, nil); err != nil || len(v.Holders) != 1 ||
			v.Revision != 102 {
			t.Errorf("%+v, %v", v, err)
		}
		r.store.setFeed(lost)
		s.occupy(t, "orders:2a")
		began = time.Now()
		p := r.begin(t.Context(), func(ctx context.Context) (*service.Grant, error) {
			_, err := r.Lock(ctx, ref("orders:2a"), true, nil)
			return nil, err
		})
		after(time.Second)
		p.waits()
		r.store.setFeed(running)
		if <-p.done; p.err != nil || !p.at.Equal(began.Add(time.Second)) {
			t.Errorf("after an interruption: %v", p.err)
		}
		r.store.setFeed(frozen)
		s.occupy(t, "orders:3")
		_, err := r.Lock(t.Context(), ref("orders:3"), true, nil)
		coded(t, err, lock.StoreUnavailable)
		_, err = r.List(t.Context(), service.ListRequest{ListRequest: list, Consistent: true})
		coded(t, err, lock.StoreUnavailable)
		r.store.on(broken, newest)
		_, err = r.Lock(t.Context(), ref("orders:3"), true, nil)
		coded(t, err, lock.StoreUnavailable)
	})
}

// TestListEntersLast: a list enters the gate when it has nothing else to wait for, and before it
// reads anything.
func TestListEntersLast(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.store.setLag(running, time.Second)
		s.occupy(t, "orders:1")
		began, looked := time.Now(), 0
		see := func(string) bool { looked++; return true }
		list := func(enters error) (*view.Page, error) {
			return r.List(t.Context(), service.ListRequest{
				ListRequest: view.ListRequest{Tenant: "acme", Limit: 10, May: see}, Consistent: true,
				Enter: func() error {
					took(t, began, time.Second)
					return enters
				},
			})
		}
		if _, err := list(io.EOF); !errors.Is(err, io.EOF) || looked > 0 {
			t.Errorf("it may not enter, and reads %d: %v", looked, err)
		}
		if p, err := list(nil); err != nil || len(p.Locks) != 1 || looked != 1 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// TestLookBeforeTheFirstList: a replica that knows nothing does not say that
// everything is free. Once it had a view it shows that, however old it is.
func TestLookBeforeTheFirstList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		s.occupy(t, "orders:1")
		c := newClient(s)
		c.setFeed(lost)
		r := s.replicaWith(t, c)
		after(time.Minute)
		list := view.ListRequest{Tenant: "acme", Limit: 10}
		_, err := r.Lock(t.Context(), ref("orders:1"), false, nil)
		if e := coded(t, err, lock.StoreUnavailable); e.OutcomeUnknown || e.RetryAfter != time.Second {
			t.Errorf("%+v", e)
		}
		_, err = r.List(t.Context(), service.ListRequest{ListRequest: list})
		coded(t, err, lock.StoreUnavailable)
		if byMode, _ := r.Count(); byMode != nil {
			t.Errorf("it counts %v", byMode)
		}
		for _, f := range []feed{running, lost, frozen} {
			c.setFeed(f)
			synctest.Wait()
			if v := r.see("orders:1"); len(v.Holders) != 1 || v.Revision != 101 {
				t.Errorf("%+v", v)
			}
			if p, err := r.List(t.Context(), service.ListRequest{ListRequest: list}); err != nil ||
				len(p.Locks) != 1 || p.Revision != 101 {
				t.Errorf("%+v, %v", p, err)
			}
			if byMode, _ := r.Count(); byMode[lock.Exclusive].Held != 1 {
				t.Errorf("it counts %v", byMode)
			}
		}
	})
}

// pageOf is what a page shows, in one word for each lock.
func pageOf(p *view.Page) (names []string) {
	for _, l := range p.Locks {
		names = append(names, fmt.Sprintf("%s:%d+%d", l.Name, len(l.Holders), l.Waiting))
	}
	return names
}

func TestList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for _, name := range []string{"b", "a", "B", "a-", "a:2", "a:10", "ab", "c"} {
			s.occupy(t, name)
		}
		foreign := want("a:1", 0)
		foreign.Tenant = "globex"
		r.hold(foreign)
		r.line(want("a:2", time.Minute))
		r.line(want("c", time.Minute))
		cases := map[string]struct {
			req  view.ListRequest
			want string
		}{
			"all":     {view.ListRequest{}, "B:1+0 a:1+0 a-:1+0 a:10:1+0 a:2:1+1 ab:1+0 b:1+0 c:1+1"},
			"prefix":  {view.ListRequest{Prefix: "a:"}, "a:10:1+0 a:2:1+1"},
			"no such": {view.ListRequest{Prefix: "x"}, ""},
			"held": {
				view.ListRequest{State: "held", Prefix: "a"}, "a:1+0 a-:1+0 a:10:1+0 a:2:1+1 ab:1+0",
			},
			"contended":    {view.ListRequest{State: "contended"}, "a:2:1+1 c:1+1"},
			"after":        {view.ListRequest{After: "a:2"}, "ab:1+0 b:1+0 c:1+1"},
			"after prefix": {view.ListRequest{Prefix: "a:", After: "a:10"}, "a:2:1+1"},
			"after other":  {view.ListRequest{Prefix: "a:", After: "b"}, ""},
			"before":       {view.ListRequest{Prefix: "b", After: "a"}, "b:1+0"},
			"between":      {view.ListRequest{After: "aa"}, "ab:1+0 b:1+0 c:1+1"},
			"may": {
				view.ListRequest{May: func(n string) bool { return strings.HasPrefix(n, "a:") }},
				"a:10:1+0 a:2:1+1",
			},
			"tenant":    {view.ListRequest{Tenant: "globex"}, "a:1:1+0"},
			"no tenant": {view.ListRequest{Tenant: "initech"}, ""},
		}
		for name, c := range cases {
			if c.req.Limit = 100; c.req.Tenant == "" {
				c.req.Tenant = "acme"
			}
			p, err := r.List(t.Context(), service.ListRequest{ListRequest: c.req})
			if err != nil || p.Next != "" || p.Locks == nil {
				t.Errorf("%s: %+v, %v", name, p, err)
				continue
			}
			if diff := cmp.Diff(c.want, strings.Join(pageOf(p), " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestPages: every page is as long as asked for, whatever the filter leaves out,
// and locks that come and go between pages change nothing for the others.
func TestPages(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		entries := map[string]*lock.Entry{}
		for i := range 30 {
			name := fmt.Sprintf("orders:%02d", i)
			entries[name] = s.occupy(t, name)
		}
		synctest.Wait()
		even := func(name string) bool { return (name[len(name)-1]-'0')%2 == 0 }
		req := view.ListRequest{Tenant: "acme", Prefix: "orders:", State: "held", Limit: 5, May: even}
		var seen []string
		for pages := 1; ; pages++ {
			p, err := r.List(t.Context(), service.ListRequest{ListRequest: req})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range p.Locks {
				seen = append(seen, strings.TrimPrefix(l.Name, "orders:"))
			}
			if p.Next == "" {
				if pages != 3 {
					t.Errorf("%d pages", pages)
				}
				break
			}
			if len(p.Locks) != 5 || p.Next != p.Locks[4].Name {
				t.Errorf("page %d: %v, then %q", pages, pageOf(p), p.Next)
			}
			req.After = p.Next
			if pages == 1 { // the cursor's own lock goes, one before it, one after it; one comes
				for _, gone := range []string{"orders:08", "orders:02", "orders:14"} {
					if err := s.end(entries[gone], lock.Released); err != nil {
						t.Fatal(err)
					}
				}
				s.occupy(t, "orders:100")
				synctest.Wait()
			}
		}
		expected := strings.Fields("00 02 04 06 08 10 100 12 16 18 20 22 24 26 28")
		if !slices.Equal(seen, expected) {
			t.Errorf("seen %v", seen)
		}
	})
}

// TestLongList: a page has to read many names, and the caller may see few of them.
func TestLongList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for i := range 3500 {
			s.occupy(t, fmt.Sprintf("orders:%04d", i))
		}
		synctest.Wait()
		may := []string{"orders:0100", "orders:0101", "orders:3400"}
		req := view.ListRequest{
			Tenant: "acme", Limit: 2, May: func(n string) bool { return slices.Contains(may, n) },
		}
		p, err := r.List(t.Context(), service.ListRequest{ListRequest: req})
		if got := strings.Join(
			pageOf(p), " ",
		); err != nil || got != "orders:0100:1+0 orders:0101:1+0" || p.Next != "orders:0101" {
			t.Errorf("%s, next %q, %v", got, p.Next, err)
		}
		req.After = p.Next
		p, err = r.List(t.Context(), service.ListRequest{ListRequest: req})
		if got := strings.Join(pageOf(p), " "); err != nil || got != "orders:3400:1+0" || p.Next != "" {
			t.Errorf("%s, next %q, %v", got, p.Next, err)
		}
	})
}

// TestListLetsTheViewGo: readers of the view delay grants, so a list releases the view's lock
// between chunks of names that the caller may not use.
func TestListLetsTheViewGo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const locks, atOnce = 1500, 250
		r := newSharedStore(t).replica(t)
		for i := range locks {
			r.hold(lasting(want(fmt.Sprint("orders:", i), 0)))
		}
		for may, expected := range map[bool]struct {
			looked int
			more   bool
		}{false: {atOnce, true}, true: {11, false}} { // one more than the page has shows that it goes on
			looked := 0
			more := r.ListPart(
				view.ListRequest{Tenant: "acme", Limit: 10, May: func(string) bool { looked++; return may }},
			)
			if looked != expected.looked || more != expected.more {
				t.Errorf(
					"may use them: %t: looked at %d of %d at once, and there is more to do: %t", may, looked,
					locks, more,
				)
			}
		}
	})
}

// TestContendedList looks only at what it shows, however many locks there are.
func TestContendedList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for i := range 2000 {
			s.occupy(t, fmt.Sprintf("orders:%04d", i))
		}
		synctest.Wait()
		first, second := r.line(want("orders:1990", time.Minute)), r.line(
			want("orders:0010", time.Minute),
		)
		expect := func(state, want string, most int) {
			t.Helper()
			looked := 0
			req := view.ListRequest{
				Tenant: "acme", State: state, Limit: 10, May: func(string) bool { looked++; return true },
			}
			p, err := r.List(t.Context(), service.ListRequest{ListRequest: req})
			if err != nil || strings.Join(pageOf(p), " ") != want || looked > most {
				t.Errorf(
					"%s: %v, %v, want %s; looked at %d locks, want %d", state, pageOf(p), err, want, looked, most,
				)
			}
		}
		expect("contended", "orders:0010:1+1 orders:1990:1+1", 2)
		second.cancel()
		synctest.Wait()
		expect("contended", "orders:1990:1+1", 1)
		r.interrupt(time.Second, func() {})
		expect("contended", "orders:1990:1+1", 1)
		first.cancel()
		synctest.Wait()
		expect("contended", "", 0)

		// A waiting set is first in the queues of its other locks, which are free.
		set := r.line(wantSet(time.Minute, "orders:0000", "zz:1", "zz:2"))
		expect("contended", "orders:0000:1+1 zz:1:0+1 zz:2:0+1", 3)
		looked := 0
		req := view.ListRequest{
			Tenant: "acme", State: "held", Prefix: "zz", Limit: 10,
			May: func(string) bool { looked++; return true },
		}
		if p, err := r.List(t.Context(), service.ListRequest{ListRequest: req}); err != nil ||
			len(p.Locks) != 0 || looked != 0 {
			t.Errorf("held: %v, %v after %d locks", pageOf(p), err, looked)
		}
		set.cancel()
	})
}

// shared is a request for a lock that many hold.
func shared(name string) service.AcquireRequest {
	req := lasting(want(name, 0))
	req.Claims[0].Mode = lock.Shared
	return req
}

// TestLooksAskTheStoreLittle: of many holders the store is asked about the ones at the
// top, and once in a second, however many look.
func TestLooksAskTheStoreLittle(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for range 150 {
			r.hold(shared("orders:1"))
		}
		asked := func(most int, look func()) {
			t.Helper()
			before := r.store.count(remaining)
			look()
			if n := r.store.count(remaining) - before; n > most {
				t.Errorf("the store was asked %d times, want at most %d", n, most)
			}
		}
		see := func() {
			v := r.see("orders:1")
			dated := 0
			for i, h := range v.Holders {
				if !h.ExpiresAt.IsZero() && i < 10 {
					dated++
				}
			}
			if len(v.Holders) != 100 || dated != 10 || v.Newest != s.Number() {
				t.Errorf(
					"%d holders, %d dated, newest %d, want 100, the first 10 and %d", len(v.Holders), dated,
					v.Newest, s.Number(),
				)
			}
		}
		asked(10, see)
		asked(0, see)
		after(time.Second)
		r.store.on(late(100*time.Millisecond), remaining)
		asked(10, func() {
			var looks []*pending
			for range 50 {
				looks = append(looks, r.begin(t.Context(), func(ctx context.Context) (*service.Grant, error) {
					see()
					return nil, nil
				}))
			}
			after(time.Second / 2)
			for _, p := range looks {
				<-p.done
			}
		})
		after(time.Second)
		asked(3, func() {
			if e := r.start(want("orders:1", 0)); len(e.refusedBy()) != 100 {
				t.Errorf("refused because of %d", len(e.refusedBy()))
			}
		})
		after(time.Second)
		r.store.on(silent, remaining)
		began := time.Now()
		if v := r.see("orders:1"); len(v.Holders) != 100 || time.Since(began) > time.Second {
			t.Errorf("%d holders after %v while the store is silent", len(v.Holders), time.Since(began))
		}
	})
}

// refusedBy waits for the rejection of a request and returns the holders in it.
func (p *pending) refusedBy() []view.Holder {
	p.t.Helper()
	p.fails(lock.Held)
	return p.grant.Holders
}

// TestRefusedSetAsksLittle: the questions are counted over all its locks.
func TestRefusedSetAsksLittle(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("orders:%02d", i))
			r.hold(lasting(want(names[i], 0)))
		}
		before := r.store.count(remaining)
		p := r.start(wantSet(0, names...))
		p.fails(lock.Held)
		if n := r.store.count(remaining) - before; n != 3 || len(p.grant.Busy) != 20 ||
			p.grant.Busy[2].Holders[0].ExpiresAt.IsZero() {
			t.Errorf("the store was asked %d times for %d locks, want 3 times for 20", n, len(p.grant.Busy))
		}
	})
}

// TestLongQueueIsShownInPart, but counted in full; a refused request does not count
// itself.
func TestLongQueueIsShownInPart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		r.hold(lasting(want("orders:1", 0)))
		for range 1005 {
			r.line(lasting(want("orders:1", time.Hour)))
		}
		if v := r.see("orders:1"); v.Waiting != 1005 || len(v.Waiters) != 1000 ||
			v.Waiters[999].Position != 1000 {
			t.Errorf("%d wait and %d are shown", v.Waiting, len(v.Waiters))
		}
		p := r.start(want("orders:1", time.Second))
		p.fails(lock.TimedOut)
		if p.grant.Waiters != 1005 || len(p.grant.Holders) != 1 {
			t.Errorf("%d wait beside %d holders, want 1005 beside 1", p.grant.Waiters, len(p.grant.Holders))
		}
	})
}

func TestCount(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		s.occupy(t, "orders:2")
		first := r.line(want("orders:1", time.Minute))
		after(3 * time.Second)
		r.line(want("orders:1", time.Minute))
		after(time.Second)
		expect := func(waiting int, longest time.Duration) {
			t.Helper()
			byMode, oldest := r.Count()
			if diff := cmp.Diff(
				map[lock.Mode]lock.Counts{lock.Exclusive: {Held: 2, Waiting: waiting}}, byMode,
			); diff != "" || oldest != longest {
				t.Errorf("oldest %v, want %v (-want +got):\n%s", oldest, longest, diff)
			}
		}
		expect(2, 4*time.Second)
		r.interrupt(2*time.Second, func() {})
		expect(2, 6*time.Second)
		first.cancel()
		synctest.Wait()
		expect(1, 3*time.Second)
	})
}
