package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// retold keeps what a feed tells.
type retold struct {
	mu   sync.Mutex
	text []string
	upTo uint64
	lost int
}

func (f *retold) Reset(s store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.upTo = append(f.text, fmt.Sprint("begins with ", len(s.Entries))), s.Number
}

func (f *retold) Apply(upTo uint64, changes []store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upTo = upTo
	for _, c := range changes {
		if c.Joined != nil {
			f.text = append(f.text, fmt.Sprint("joined ", c.Joined.ID))
		} else {
			f.text = append(f.text, fmt.Sprint("left ", c.Left, " ", c.Reason))
		}
	}
}

func (f *retold) Recall([]store.Ended, bool) {}

func (f *retold) Lost(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
}

func (f *retold) isLost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost > 0
}

func (f *retold) reached(number uint64) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.upTo >= number
	}
}

func (f *retold) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.text)
}

// refusesLists does not answer when a feed reads which entries there are, or were.
type refusesLists struct {
	kvClient
	refuses func() bool
}

func (r refusesLists) Range(
	ctx context.Context, q *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	if q.Revision > 0 && strings.Contains(string(q.Key), entriesDir) && r.refuses() {
		return nil, context.DeadlineExceeded
	}
	return r.kvClient.Range(ctx, q)
}

func (s *Store) newestNumber(t *testing.T) uint64 {
	t.Helper()
	number, err := s.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// TestInterruptedGoesOn: an interrupted feed resumes where it was, even if the store does not
// answer at first, and reports what happened meanwhile. A feed that begins at an earlier number
// does the same. If the store has compacted that history, the feed begins at the present.
func TestInterruptedGoesOn(t *testing.T) {
	var cut atomic.Bool
	var refused atomic.Int64
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		begin := c.watch
		c.watch = func(ctx context.Context, first, end string, from int64) watch {
			return cuttable(ctx, begin, first, end, from, &cut)
		}
		c.kv = refusesLists{c.kv, func() bool { return refused.Add(-1) >= 0 }}
	})
	follow := func(f *retold) { s.tasks.Go(func() { s.Watch(s.closing, f) }) }
	f := &retold{}
	follow(f)
	soon(t, "the feed has begun", f.reached(s.newestNumber(t)))
	first := s.mustEnqueue(t, reusable("first", false))
	soon(t, "the feed has it", f.reached(first.Number))
	cut.Store(true)
	soon(t, "the feed is interrupted", f.isLost)
	refused.Store(1)
	s.mustEnqueue(t, reusable("second", false))
	if err := s.Remove(t.Context(), first, lock.Released); err != nil {
		t.Fatal(err)
	}
	cut.Store(false)
	soon(t, "the feed goes on", f.reached(s.newestNumber(t)))
	want := []string{
		"begins with 0", "joined first", "begins with 1", "joined second", "left first released",
	}
	if got := slices.Compact(f.all()); !slices.Equal(got, want) { // it has begun again and again
		t.Errorf("told %q, want %q", got, want)
	}
	refused.Store(1)
	s.Resume(first.Number)
	again := &retold{}
	follow(again)
	soon(t, "another feed has all", again.reached(s.newestNumber(t)))
	if got := again.all(); !slices.Equal(got, want[2:]) {
		t.Errorf("told %q, want %q", got, want[2:])
	}
}

// TestNotForEver: a feed that goes on where it was begins with what there is when it does not catch
// up, when too much has happened, or by another fence floor.
func TestNotForEver(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	now := time.Now()
	for name, c := range map[string]struct {
		told   uint64
		resume uint64
		floor  uint64
		behind time.Duration
		at     int64
		want   int64
	}{
		"interrupted":               {told: 10, at: 20, want: 10},
		"nothing happened":          {told: 20, at: 20},
		"numbers went back":         {told: 30, at: 20},
		"by another floor":          {told: 10, at: 20, floor: 5},
		"too much happened":         {told: 10, at: 11 + maxResumed},
		"it has tried a while":      {told: 10, at: 20, behind: resumeTime, want: 10},
		"it does not catch up":      {told: 10, at: 20, behind: resumeTime + 1},
		"to be resumed":             {resume: 10, at: 10 + maxResumed, want: 10},
		"resumed from far too long": {resume: 10, at: 11 + maxResumed},
		"was resumed, interrupted":  {told: 15, resume: 10, at: 20, want: 15},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGaps(s.feed, &leaving{})
			g.told, g.floor = c.told, c.floor
			if s.Resume(c.resume); c.behind > 0 {
				g.behind = now.Add(-c.behind)
			}
			if got := g.earlier(c.at, now); got != c.want {
				t.Errorf("it begins at %d, want %d", got, c.want)
			}
		})
	}
	g := newGaps(s.feed, &leaving{})
	s.Resume(5)
	g.told = 10
	if g.beginNow(); g.earlier(20, now) != 0 {
		t.Error("who meets again what made him start over does not begin with what there is")
	}
	if g.told = 10; g.earlier(20, now) != 10 {
		t.Error("it does not go on where it was")
	}
	s.trust.Saw(50)
	if s.trust.Received(s.trust.Sent(), 20, 0); g.earlier(20, now) != 0 {
		t.Error("it goes on where it was in a store that has lost its past, which was another one")
	}
	g.told, g.behind = 10, now
	if g.reached(now.Add(time.Second)); !g.behind.IsZero() {
		t.Error("who has caught up counts as behind")
	}
}

// TestBehindUntilItHasCaughtUp: a feed that goes on where it was is behind until it has caught up,
// however often it begins.
func TestBehindUntilItHasCaughtUp(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g, now := newGaps(s.feed, &leaving{}), time.Now()
	g.Reset(store.Snapshot{Number: 10})
	if g.whole.Before(now) {
		t.Error("a feed that begins with what there is has not had everything")
	}
	whole := g.whole
	if g.earlier(20, now) != 10 {
		t.Fatal("it does not go on where it was")
	}
	g.Reset(store.Snapshot{Number: 10})
	if g.earlier(20, now.Add(resumeTime+1)) != 0 || g.whole != whole {
		t.Error("it counts as caught up when it begins in the past")
	}
}

// TestMeetsAChangeOnce: a feed that starts over because the store's own record has changed begins
// behind that, and does not meet it again and again.
func TestMeetsAChangeOnce(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	f := &retold{}
	s.tasks.Go(func() { s.Watch(s.closing, f) })
	soon(t, "the feed has begun", f.reached(s.newestNumber(t)))
	if err := s.conn.SetForm(t.Context(), s.prefix, store.Form); err != nil { // it is written again
		t.Fatal(err)
	}
	soon(t, "the feed goes on", f.reached(s.mustEnqueue(t, reusable("after", false)).Number))
	if f.mu.Lock(); f.lost != 1 {
		t.Errorf("it was interrupted %d times", f.lost)
	}
	f.mu.Unlock()
}

// TestResumedBehindAFloor: a fence floor changes every number from before it, even one above the
// floor. A feed that should resume at such a number begins at the present.
func TestResumedBehindAFloor(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	for _, id := range []lock.ID{"a", "b", "c"} {
		if err := s.Remove(
			t.Context(), s.mustEnqueue(t, reusable(id, false)), lock.Released,
		); err != nil {
			t.Fatal(err)
		}
	}
	at := s.newestNumber(t)
	given, err := Open(t.Context(), s.conn, Config{FenceFloor: at - 4})
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	given.Resume(at)
	f := &retold{}
	given.tasks.Go(func() { given.Watch(given.closing, f) })
	soon(t, "the feed has all", f.reached(given.newestNumber(t)))
	if got := f.all(); !slices.Equal(got, []string{"begins with 0"}) {
		t.Errorf("told %q", got)
	}
}

// TestOwnReasonsAreToldYet: etcd was full, so that the reason of a removal is in this replica's
// memory only. A feed that goes on where it was is yet to tell it.
func TestOwnReasonsAreToldYet(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g := newGaps(s.feed, &leaving{})
	g.Reset(store.Snapshot{Number: 10})
	s.ends.unrecordedReasons.Store(lock.ID("since"), lock.Released)
	if g.earlier(20, time.Now()) != 10 {
		t.Fatal("it does not go on where it was")
	}
	g.Reset(store.Snapshot{Number: 10})
	if why := s.feed.unsaid("since"); why != lock.Released {
		t.Errorf("what was released is told to have ended because of %q", why)
	}
}

// TestStoreThatWentBack: nothing would come from a store that was put back to before what it has
// told until it is there again.
func TestStoreThatWentBack(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	beyond := s.revision(s.newestNumber(t)) + 1000
	if err := newGuard(s.keyspace, beyond, func() {}).check(t.Context()); !errors.Is(
		err, errWentBack,
	) {
		t.Errorf("a watch goes on: %v", err)
	}
}

// TestRecordsOfALostPast: a watch of small records has reported a revision that the store has not
// reached. So the store has lost its past, and grants nothing.
func TestRecordsOfALostPast(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.watch = func(context.Context, string, string, int64) watch {
			told := make(chan watchMessage, 1)
			told <- watchMessage{revision: 1 << 20}
			return watch{messages: told, ask: func() {}}
		}
	})
	s.tasks.Go(func() { s.records.Watch(s.closing, "note", func() {}) })
	within(t, 10*time.Second, "nothing is granted", func() bool { return s.trust.Refusal() != nil })
}

// muchHappens has entries of one lock come and go, each by a write of its own, and small records
// beside.
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
					k := store.RecordKey{Kind: "test", Tenant: "acme", ID: string(e.ID)}
					p := store.RecordPut{RecordKey: k, Value: []byte("{}")}
					_, err = s.Records().Put(t.Context(), p)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestManyRevisionsAreToldAgain: a feed that resumes reports each change that happened meanwhile,
// once and in order, though it takes longer than a feed may be behind otherwise.
func TestManyRevisionsAreToldAgain(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	follow := func(f *retold) { s.tasks.Go(func() { s.Watch(s.closing, f) }) }
	live := &retold{}
	follow(live)
	from := s.newestNumber(t)
	soon(t, "the feed has begun", live.reached(from))
	const entries = 71 * 32
	muchHappens(t, s, entries)
	upTo := s.newestNumber(t)
	soon(t, "the feed has all", live.reached(upTo))
	s.Resume(from)
	again := &retold{}
	follow(again)
	soon(t, "another feed has all", again.reached(upTo))
	// The first feed is no measure: on a busy machine it may have restarted.
	at := map[string]int{}
	for i, text := range again.all() {
		at[text] = i
	}
	if n := len(again.all()); n != len(at) || n != 1+2*entries {
		t.Errorf("%d changes are told, %d of them different, of %d entries", n, len(at), entries)
	}
	for text, joined := range at {
		id, is := strings.CutPrefix(text, "joined ")
		if is && at[fmt.Sprint("left ", id, " ", lock.Released)] < joined {
			t.Errorf("%s is told to have left before it joined", id)
		}
	}
}

// TestMayLagWhileItCatchesUp: a watch that began in the past is not started over for being behind.
func TestMayLagWhileItCatchesUp(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	f := newGaps(s.feed, &leaving{})
	g := newGuard(s.keyspace, 10, func() {})
	g.limit, g.goal, g.goalSet = f.mayLag, 20, time.Now().Add(-2*feedTimeout)
	if err := g.check(t.Context()); !errors.Is(err, errFeedBehind) {
		t.Errorf("a watch that is late goes on: %v", err)
	}
	f.setBehind(time.Now())
	if err := g.check(t.Context()); err != nil {
		t.Errorf("one that catches up is started over: %v", err)
	}
	g.goalSet = time.Now().Add(-resumeTime - 1)
	if err := g.check(t.Context()); !errors.Is(err, errFeedBehind) {
		t.Errorf("one that does not catch up goes on: %v", err)
	}
}

// TestRetoldEndIsNotRecordedAgain: between the event of an end and the event of its record, a
// replica records ends. The end was recorded then, and since then its key was dropped and used
// again. The key is not used up.
func TestRetoldEndIsNotRecordedAgain(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := reusable("again", true)
	before := s.mustEnqueue(t, reusable("before", false))
	placed, now := s.mustEnqueue(t, e), time.Now()
	g := newGaps(s.feed, &leaving{left: make(chan store.Change, 10)})
	g.Reset(store.Snapshot{Number: before.Number})
	if g.earlier(s.revision(placed.Number), now) == 0 {
		t.Fatal("it does not go on where it was")
	}
	r := &run{s: s}
	r.leaves(4, e)
	r.gone(4, s.markKey(e.Tenant, e.ID))
	if err := s.feed.hand(g, watchMessage{events: r.events, revision: 4}); err != nil {
		t.Fatal(err)
	}
	s.ends.recordEnds()
	r.events = nil
	r.record(5, e, lock.Expired)
	if err := s.feed.hand(g, watchMessage{events: r.events, revision: 5}); err != nil {
		t.Fatal(err)
	}
	g.reached(now.Add(time.Second))
	s.ends.recordEnds()
	if err := s.Remove(t.Context(), placed, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	if why := s.usedUpBy(t, e); why != "" {
		t.Errorf("the key is used up by %q", why)
	}
}

// TestEndsAreRecordedWhenCaughtUp: what ended and is on record nowhere is recorded when a feed that
// was behind has caught up.
func TestEndsAreRecordedWhenCaughtUp(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g, now := newGaps(s.feed, &leaving{}), time.Now()
	g.Reset(store.Snapshot{Number: 10})
	if g.earlier(20, now) != 10 {
		t.Fatal("it does not go on where it was")
	}
	s.feed.unrecorded.add(unrecordedEnd{End: store.End{ID: "e", Reason: lock.Expired}})
	g.reached(time.Time{}) // as it is called before it has a goal
	if n := len(s.feed.unrecorded.due()); n != 0 {
		t.Errorf("%d ends are to be recorded while it is behind", n)
	}
	if g.reached(now.Add(time.Second)); len(s.feed.unrecorded.due()) != 1 {
		t.Error("it is not to be recorded")
	}
}
