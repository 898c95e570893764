package view_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/store"
)

// TestLateUntilAllIsTold: a view whose feed goes on where it was interrupted is late until it has told what happened
// meanwhile, though the feed is there.
func TestLateUntilAllIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := empty()
		v.Reset(store.Snapshot{Number: 10, Newest: 10})
		if late := v.LateFor(); late != 0 {
			t.Errorf("with all that there is it is late for %v", late)
		}
		v.Lost(nil)
		<-time.After(time.Second)
		v.Reset(store.Snapshot{Number: 10, Newest: 20})
		v.Apply(19, nil)
		if late := v.LateFor(); late != time.Second || v.LostFor() != 0 {
			t.Errorf("it is late for %v and lost for %v", late, v.LostFor())
		}
		if v.Apply(20, nil); v.LateFor() != 0 {
			t.Errorf("with all that there is it is late for %v", v.LateFor())
		}
	})
}

// TestLateThroughInterruptions: a view whose feed is interrupted again before it has told what happened meanwhile is late
// since it was interrupted first.
func TestLateThroughInterruptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := empty()
		v.Reset(store.Snapshot{Number: 10, Newest: 10})
		for range 5 {
			v.Lost(nil)
			<-time.After(time.Second)
			v.Reset(store.Snapshot{Number: 10, Newest: 20})
			<-time.After(time.Second)
		}
		if late := v.LateFor(); late != 10*time.Second {
			t.Errorf("it is late for %v", late)
		}
		v.Lost(nil)
		<-time.After(time.Second)
		if late, lost := v.LateFor(), v.LostFor(); late != 11*time.Second || lost != time.Second {
			t.Errorf("it is late for %v and lost for %v", late, lost)
		}
		v.Reset(store.Snapshot{Number: 20, Newest: 20})
		v.Lost(nil)
		<-time.After(time.Second)
		if late := v.LateFor(); late != time.Second {
			t.Errorf("after it had all it is late for %v", late)
		}
	})
}
