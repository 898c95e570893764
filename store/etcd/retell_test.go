package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// pastWatches counts the watches by which a store reads the past, and knows where its feed's watch began last.
type pastWatches struct {
	count, began atomic.Int64
}

func (p *pastWatches) of(c *Conn) {
	past, feed := c.watchPast, c.watch
	c.watchPast = func(ctx context.Context, first, end string, from int64) watch {
		p.count.Add(1)
		return past(ctx, first, end, from)
	}
	c.watch = func(ctx context.Context, prefix string, from int64) watch {
		p.began.Store(from)
		return feed(ctx, prefix, from)
	}
}

// muchHappens has entries of one lock come and go, each by a write of its own, and small records beside.
func muchHappens(t *testing.T, s *Store, entries int) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for i := range entries / 32 {
				e := reusable(lock.ID(fmt.Sprint(worker, "-", i)), i%8 == 0)
				e.Claims[0].Name = "one"
				placed, _, err := s.Enqueue(t.Context(), e)
				if err == nil {
					err = s.Remove(t.Context(), placed, lock.Released)
				}
				if err == nil && i%20 == 0 {
					_, err = s.Records().Put(t.Context(), store.RecordPut{RecordKey: store.RecordKey{Kind: "test", Tenant: "acme", ID: string(e.ID)}, Value: []byte("{}")})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestManyRevisionsRetold: what happened over many revisions is told as a feed told it that was there, each change
// once and in order, and is read by watches each of which etcd answers at once.
func TestManyRevisionsRetold(t *testing.T) {
	t.Parallel()
	var watches pastWatches
	s, _ := testStore(t, EmbeddedConfig{}, watches.of)
	follow := func(f *retold) { s.tasks.Go(func() { s.Watch(s.closing, f) }) }
	live := &retold{}
	follow(live)
	from := s.newestNumber(t)
	soon(t, "the feed has begun", live.reached(from))
	muchHappens(t, s, 2300)
	upTo := s.newestNumber(t)
	soon(t, "the feed has all", live.reached(upTo))
	before := watches.count.Load()
	s.Resume(from)
	again := &retold{}
	follow(again)
	soon(t, "another feed has all", again.reached(upTo))
	if got, want := again.all(), live.all(); !slices.Equal(got, want) {
		t.Errorf("%d changes are told, and %d were; or they are others", len(got), len(want))
	}
	revisions := int64(upTo - from)
	if revisions < 2*slice {
		t.Fatalf("only %d revisions were written", revisions)
	}
	if got := watches.count.Load() - before; got < revisions/slice {
		t.Errorf("%d revisions are read by %d watches", revisions, got)
	}
	soon(t, "its watch begins where all of that was read", func() bool { return watches.began.Load() >= int64(upTo)-slice })
}

// TestTooMuchToRetell: where what happened does not fit into memory the feed begins with what there is.
func TestTooMuchToRetell(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	from := s.newestNumber(t)
	muchHappens(t, s, 1200)
	s.sliceBytes = 10 << 10
	s.Resume(from)
	f := &retold{}
	s.tasks.Go(func() { s.Watch(s.closing, f) })
	soon(t, "the feed has begun", f.reached(s.newestNumber(t)))
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.text) < 2 || f.text[len(f.text)-1] != "begins with 0" || f.lost != 1 {
		t.Errorf("after %d interruptions it told %.5q", f.lost, f.text)
	}
}

// TestRetellEnds: who reads the past stops when the feed does, and what is forgotten meanwhile is an error after which
// the feed begins again.
func TestRetellEnds(t *testing.T) {
	t.Parallel()
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	from := s.newestNumber(t)
	muchHappens(t, s, 64)
	at := s.newestNumber(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.readSlices(ctx, int64(from), int64(at)); !errors.Is(err, context.Canceled) {
		t.Errorf("who is told to stop says %v", err)
	}
	if err := m.compact(int64(at)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.readSlices(t.Context(), int64(from), int64(at)); !errors.Is(err, errForgotten) {
		t.Errorf("what is forgotten gives %v", err)
	}
}

// readablePast is a store at a revision, of which all that was written is there to be read: an entry at each.
type readablePast struct {
	kvClient
	s      *Store
	newest int64
}

// Range implements kvClient.
func (r *readablePast) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: r.newest}}, nil
}

// watch gives a part of it, as etcd does.
func (r *readablePast) watch(_ context.Context, _, _ string, from int64) watch {
	last := min(r.newest, from+slice+9)
	m, out := watchMessage{revision: last}, make(chan watchMessage, 1)
	for at := from; at <= last; at++ {
		e := reusable(lock.ID(fmt.Sprint(at)), false)
		m.events = append(m.events, &mvccpb.Event{Kv: &mvccpb.KeyValue{
			Key: r.s.primaryKey(e), Value: store.Encode(store.ValueOf(e)), Lease: 7, CreateRevision: at, ModRevision: at,
		}})
	}
	out <- m
	return watch{messages: out, ask: func() {}}
}

// past returns a store with such a past, which does not follow it.
func past(t *testing.T, newest int64) *Store {
	r := &readablePast{newest: newest}
	r.s = newStore(&Conn{kv: r, watchPast: r.watch}, Config{})
	t.Cleanup(func() {
		r.s.stop()
		r.s.leases.grants.Close()
		r.s.commits.Close()
	})
	return r.s
}

// TestPartsRetold: what is read a part at a time is told without a gap and in order, and not faster than it can be filed.
func TestPartsRetold(t *testing.T) {
	const newest = slice*slicesAtOnce + slice/2
	bubble.Test(t, func(t *testing.T) {
		s := past(t, newest)
		f, start := &retold{}, time.Now()
		at, err := s.retell(t.Context(), newGaps(s, f), 0)
		if at != newest || err != nil {
			t.Fatalf("told up to %d of %d: %v", at, newest, err)
		}
		if took := time.Since(start); took < 250*time.Millisecond {
			t.Errorf("%d changes are told within %v", newest, took)
		}
		all := f.all()
		for i, text := range all {
			if want := fmt.Sprint("joined ", i+1); text != want {
				t.Fatalf("%q is told where %q is to be", text, want)
			}
		}
		if len(all) != newest {
			t.Errorf("%d of %d are told", len(all), newest)
		}
	})
}

// TestRetellIsGivenUp: a feed does not try for ever to read what happened.
func TestRetellIsGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := past(t, 2*slice)
		s.conn.watchPast = func(context.Context, string, string, int64) watch { return watch{ask: func() {}} }
		start := time.Now()
		_, err := s.retell(t.Context(), newGaps(s, &retold{}), 0)
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != resumeTime {
			t.Errorf("it is given up after %v: %v", took, err)
		}
	})
}

// TestLargePartsRetold: what happened in many slices may be too large to be read at once, and is told all the same.
func TestLargePartsRetold(t *testing.T) {
	const newest = 5 * slice
	bubble.Test(t, func(t *testing.T) {
		s := past(t, newest)
		e := reusable(lock.ID(fmt.Sprint(newest)), false)
		s.sliceBytes = slice * int64(len(s.primaryKey(e))+len(store.Encode(store.ValueOf(e))))
		f := &retold{}
		if at, err := s.retell(t.Context(), newGaps(s, f), 0); at != newest || err != nil || len(f.all()) != newest {
			t.Errorf("told up to %d, %d of %d changes: %v", at, len(f.all()), newest, err)
		}
	})
}

// TestRetoldEndIsNotRecordedAgain: an end and the record of it are told a part of the past apart, between which a replica
// records ends. It was recorded then, and its key has been forgotten and taken again since: that is not used up.
func TestRetoldEndIsNotRecordedAgain(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := reusable("again", true)
	before := s.mustEnqueue(t, reusable("before", false))
	placed, now := s.mustEnqueue(t, e), time.Now()
	g := newGaps(s, &ends{left: make(chan store.Change, 10)})
	g.Reset(store.Snapshot{Number: before.Number})
	if g.earlier(s.revision(placed.Number), now) == 0 {
		t.Fatal("it does not go on where it was")
	}
	r := &run{s: s}
	r.leaves(4, e)
	r.gone(4, s.markKey(e.Tenant, e.ID))
	if err := s.hand(g, watchMessage{events: r.events, revision: 4}); err != nil {
		t.Fatal(err)
	}
	s.recordEnds()
	r.events = nil
	r.record(5, e, lock.Expired)
	if err := s.hand(g, watchMessage{events: r.events, revision: 5}); err != nil {
		t.Fatal(err)
	}
	g.reached(now.Add(time.Second))
	s.recordEnds()
	if err := s.Remove(t.Context(), placed, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	if why := s.usedUpBy(t, e); why != "" {
		t.Errorf("the key is used up by %q", why)
	}
}

// TestEndsAreRecordedWhenCaughtUp: what ended and is on record nowhere is recorded when a feed that was behind has caught up.
func TestEndsAreRecordedWhenCaughtUp(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g, now := newGaps(s, &ends{}), time.Now()
	g.Reset(store.Snapshot{Number: 10})
	if g.earlier(20, now) != 10 {
		t.Fatal("it does not go on where it was")
	}
	s.unrecorded.add(unrecordedEnd{End: store.End{ID: "e", Reason: lock.Expired}})
	g.reached(time.Time{}) // as it is told before it has a goal
	if n := len(s.unrecorded.due()); n != 0 {
		t.Errorf("%d ends are to be recorded while it is behind", n)
	}
	if g.reached(now.Add(time.Second)); len(s.unrecorded.due()) != 1 {
		t.Error("it is not to be recorded")
	}
}
