package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestExpiryInAGap: entries with a key expire, or are released, while the only feed there
// is is interrupted. Their keys are used up all the same, for a replica too that has never
// seen them, and each for its own reason. One that is withdrawn leaves its key free. Which
// of several entries of a key an end is of does not depend on clocks. etcd has forgotten what
// happened meanwhile: the feed cannot go on where it was.
func TestExpiryInAGap(t *testing.T) {
	t.Parallel()
	var cut atomic.Bool
	s, m := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		begin := c.watch
		c.watch = func(ctx context.Context, first, end string, from int64) watch {
			return cuttable(ctx, begin, first, end, from, &cut)
		}
		c.kv = refusesLists{c.kv, cut.Load}
	})
	f := &leaving{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Watch(s.closing, f) })
	soon(t, "the feed is up", f.isUp)
	expires, released, withdrawn := reusable("expires", true), reusable("released", true), reusable(
		"withdrawn", true,
	)
	expires.TTL = MinTTL
	remove := func(e *lock.Entry, why lock.Reason) {
		t.Helper()
		if err := s.Remove(t.Context(), e, why); err != nil {
			t.Fatal(err)
		}
	}
	remove(s.mustEnqueue(t, expires), lock.Withdrawn)
	// As a try that has found the lock held, and comes again: to a replica whose clock is
	// behind that of the first, so that its entry is asked for before the other's end.
	expires.EnqueuedAt = expires.EnqueuedAt.Add(-time.Minute)
	s.mustEnqueue(t, expires)
	withdrawn.EnqueuedAt = time.Now().Add(time.Minute) // by a clock that is ahead
	gives := s.mustEnqueue(t, withdrawn)
	gone := s.mustEnqueue(t, released)
	soon(t, "the feed has all", func() bool { return s.feed.at.Load() >= s.revision(gone.Number) })
	cut.Store(true)
	remove(gone, lock.Released)
	remove(gives, lock.Withdrawn)
	soon(t, "the entry expires", func() bool {
		found, err := s.find(t.Context(), expires)
		return err == nil && found == nil
	})
	if err := m.compact(s.revision(s.newestNumber(t))); err != nil {
		t.Fatal(err)
	}
	cut.Store(false)
	other, err := Open(t.Context(), s.conn, Config{}) // it has never seen them
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for e, want := range map[*lock.Entry]lock.Reason{expires: lock.Expired, released: lock.Released} {
		soon(t, "the key is used up", func() bool {
			m, err := other.readMark(t.Context(), e)
			return err == nil && m != nil && m.Reason != ""
		})
		var why *lock.Error
		if _, _, err := other.Enqueue(t.Context(), e); !errors.As(err, &why) || why.Code != lock.Lost ||
			why.Reason != want {
			t.Errorf("%s again = %v, want %s", e.ID, err, want)
		}
	}
	// what expired with it was put down
	if _, _, err := other.Enqueue(t.Context(), withdrawn); err != nil {
		t.Errorf("%s again = %v", withdrawn.ID, err)
	}
}

// TestOwnReasonsAreForgotten: etcd was full, so that reasons of removals are in this
// replica's memory only. Its feed was interrupted when the entries went, and does not tell
// that any more. The reasons are not kept forever.
func TestOwnReasonsAreForgotten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gap   time.Duration
		told  []store.Ended
		wants lock.Reason // of the entry with a key
	}{
		"short gap":   {0, nil, lock.Released},
		"long gap":    {time.Hour, nil, ""},
		"is recorded": {0, []store.Ended{{ID: "keyed", Reason: lock.Revoked}}, lock.Revoked},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
			f := recalled{&leaving{}, map[lock.ID]lock.Reason{}}
			g := newGaps(s.feed, f)
			entry := func(id lock.ID) *lock.Entry {
				e := reusable(id, id == "keyed")
				e.Number = 7
				s.ends.unrecordedReasons.Store(e.ID, lock.Released)
				return e
			}
			plain, keyed, stays := entry("plain"), entry("keyed"), entry("stays")
			g.Reset(store.Snapshot{Number: 10, Entries: []*lock.Entry{plain, keyed, stays}})
			g.Recall(nil, true)
			g.whole = g.whole.Add(-test.gap)
			g.Lost(errFeedEnded)
			g.Reset(store.Snapshot{Number: 20, Entries: []*lock.Entry{stays}})
			g.Recall(test.told, true)
			var kept []any
			s.ends.unrecordedReasons.Range(func(id, _ any) bool {
				kept = append(kept, id)
				return true
			})
			if len(kept) != 1 || kept[0] != stays.ID {
				t.Errorf("reasons of %v are kept", kept)
			}
			if got := f.why["keyed"]; got != test.wants {
				t.Errorf("the entry with a key ended because of %q, want %q", got, test.wants)
			}
		})
	}
}

// recalled is a follower that notes why entries are said to have ended.
type recalled struct {
	*leaving
	why map[lock.ID]lock.Reason
}

// Recall implements store.Watcher.
func (r recalled) Recall(all []store.Ended, _ bool) {
	for _, e := range all {
		r.why[e.ID] = e.Reason
	}
}

// cuttable is a watch that breaks when it is cut.
func cuttable(
	ctx context.Context, begin watchFunc, first, end string, from int64, cut *atomic.Bool,
) watch {
	w := begin(ctx, first, end, from)
	told := make(chan watchMessage)
	go func() {
		defer close(told)
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for !cut.Load() {
			select {
			case m, ok := <-w.messages:
				if !ok || !tell(ctx, told, m) {
					return
				}
			case <-look.C:
			}
		}
		tell(ctx, told, watchMessage{err: errFeedEnded})
	}()
	return watch{messages: told, ask: w.ask}
}

func tell(ctx context.Context, told chan<- watchMessage, m watchMessage) bool {
	select {
	case told <- m:
		return true
	case <-ctx.Done():
		return false
	}
}
