package view_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestLateUntilAllIsTold: a view whose feed goes on where it was interrupted is late until it has
// told what happened meanwhile, though the feed is there.
func TestLateUntilAllIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		v := empty()
		v.Reset(store.Snapshot{Number: 10, Newest: 10})
		if late := v.Progress.LateFor(); late != 0 {
			t.Errorf("with all that there is it is late for %v", late)
		}
		v.Lost(nil)
		<-time.After(time.Second)
		v.Reset(store.Snapshot{Number: 10, Newest: 20})
		v.Apply(19, nil)
		if late := v.Progress.LateFor(); late != time.Second || v.Progress.LostFor() != 0 {
			t.Errorf("it is late for %v and lost for %v", late, v.Progress.LostFor())
		}
		if v.Apply(20, nil); v.Progress.LateFor() != 0 {
			t.Errorf("with all that there is it is late for %v", v.Progress.LateFor())
		}
	})
}

// TestLateThroughInterruptions: a view whose feed is interrupted again before it has told what
// happened meanwhile is late since it was interrupted first.
func TestLateThroughInterruptions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		v := empty()
		v.Reset(store.Snapshot{Number: 10, Newest: 10})
		for range 5 {
			v.Lost(nil)
			<-time.After(time.Second)
			v.Reset(store.Snapshot{Number: 10, Newest: 20})
			<-time.After(time.Second)
		}
		if late := v.Progress.LateFor(); late != 10*time.Second {
			t.Errorf("it is late for %v", late)
		}
		v.Lost(nil)
		<-time.After(time.Second)
		late, lost := v.Progress.LateFor(), v.Progress.LostFor()
		if late != 11*time.Second || lost != time.Second {
			t.Errorf("it is late for %v and lost for %v", late, lost)
		}
		v.Reset(store.Snapshot{Number: 20, Newest: 20})
		v.Lost(nil)
		<-time.After(time.Second)
		if late := v.Progress.LateFor(); late != time.Second {
			t.Errorf("after it had all it is late for %v", late)
		}
	})
}

// TestEndedInALongGap: of an entry that went in a gap it is not known why, if the last time that
// the view had everything is so long ago that the reason may be forgotten: what a feed told
// meanwhile that went on where it was is no such time, until it has told all.
func TestEndedInALongGap(t *testing.T) {
	for upTo, want := range map[uint64]lock.Reason{15: lock.Unknown, 20: lock.Expired} {
		bubble.Test(t, func(t *testing.T) {
			v := empty()
			e := &lock.Entry{
				ID: "e", Tenant: "acme", Number: 5, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
			}
			begin := func(s store.Snapshot) { v.Reset(s); v.Recall(nil, true) }
			begin(store.Snapshot{Number: 10, Newest: 10, Entries: []*lock.Entry{e}})
			v.Lost(nil)
			<-time.After(store.LongestGap + time.Minute)
			begin(store.Snapshot{Number: 10, Newest: 20, Entries: []*lock.Entry{e}})
			v.Apply(upTo, nil)
			v.Lost(nil)
			<-time.After(time.Second)
			if begin(store.Snapshot{Number: 30, Newest: 30}); v.Reasons.EndOf("acme", "e") != want {
				t.Errorf("told up to %d it ended by %q, want %q", upTo, v.Reasons.EndOf("acme", "e"), want)
			}
		})
	}
}
