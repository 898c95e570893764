package outbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/bubble"
)

// pastFeed is what a log was told in the course of an hour.
type pastFeed struct {
	t   *testing.T
	log *events.Log
}

// tells adds an event.
func (f *pastFeed) tells(number uint64) {
	e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "a"}}}
	f.log.Add(lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
	f.log.Reached(number)
	f.files(number)
}

// misses has the feed start over behind a number.
func (f *pastFeed) misses(number uint64) {
	f.log.Begin(number)
	f.files(number)
}

func (f *pastFeed) files(number uint64) {
	f.t.Helper()
	for end := time.Now().Add(time.Second); f.log.Told() != number; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatal("the log does not file it")
		}
	}
}

// TestOldGaps: who has everything told again since an instant is told of the gaps of that time, as far as they go, and of
// none from before, whatever happened next, and when.
func TestOldGaps(t *testing.T) {
	for since, want := range map[time.Duration]struct {
		told   []uint64
		missed string
	}{
		-time.Minute:     {[]uint64{111, 131, 132}, "51-0_131-0"},
		5 * time.Minute:  {[]uint64{111, 131, 132}, "105-0_131-0"}, // 101 to 104 are not known, and happened before
		15 * time.Minute: {[]uint64{111, 131, 132}, "112-0_131-0"},
		25 * time.Minute: {[]uint64{131, 132}, "112-0_131-0"},
		35 * time.Minute: {[]uint64{131, 132}, ""},
		45 * time.Minute: {[]uint64{132}, ""},
		55 * time.Minute: {nil, ""},
	} {
		t.Run(fmt.Sprint(since), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				m := newMissing(t)
				m.tells(0)
				f, began := &pastFeed{t, events.NewLog(events.Config{TenantEvents: 3})}, time.Now()
				t.Cleanup(f.log.Close)
				m.Locks, m.target.From, m.window.last = told{log: f.log}, 50, at(132)
				for minutes, happens := range []func(){
					func() { f.misses(100); f.tells(101); f.tells(102); f.tells(103); f.tells(104) },
					func() { f.misses(110) },
					func() { f.tells(111) },
					func() { f.misses(120); f.misses(130) },
					func() { f.tells(131) },
					func() { f.tells(132) },
				} {
					<-time.After(time.Until(began.Add(time.Duration(minutes) * 10 * time.Minute)))
					happens()
				}
				m.asks(&request{Since: began.Add(since).UnixMilli()})
				m.takes()
				var told []uint64
				for _, d := range m.target.pending {
					told = append(told, d.event().Number)
				}
				slices.Sort(told)
				missed := ""
				if l := m.target.lost; l != nil {
					missed = missedID(l.Missed)
				}
				if diff := cmp.Diff(want.told, told); diff != "" || missed != want.missed {
					t.Errorf("it is told to miss %q, want %q, and told (-want +got):\n%s", missed, want.missed, diff)
				}
				m.flushMissed()
				m.takes()
			})
		})
	}
}
