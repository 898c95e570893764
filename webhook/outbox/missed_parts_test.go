package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// TestMissedIsToldInParts: when many miss something at the same moment, some are told at each beat, and each of them
// before one is told again.
func TestMissedIsToldInParts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n, parts = 20, int(flushPause / tick)
		m := newMissing(t)
		m.makesNoAttempts()
		var all []*target
		for i := range n {
			one := m.owner.target("acme", fmt.Sprint("w", i))
			one.sub = &subscription.Subscription{ID: one.id, Tenant: "acme", Locks: "*", Version: 1000}
			all = append(all, one)
		}
		told := map[*target]int{}
		for beat := 0; len(told) < n; beat++ {
			if beat == 3*parts {
				t.Fatalf("%d of %d are told after three pauses", len(told), n)
			}
			for _, one := range all {
				if one.lost == nil {
					m.note(one, gapAt(at(uint64(beat+1))), api.MissedForRoom, &item{id: at(uint64(beat + 1)), read: time.Now()})
				}
			}
			m.owner.flushMissed()
			now := 0
			for _, one := range all {
				if one.lost == nil {
					now++
					told[one]++
				}
			}
			if now == 0 || now > (n+parts-1)/parts {
				t.Errorf("%d are told at beat %d", now, beat)
			}
			m.takes()
			<-time.After(tick)
		}
		for _, one := range all {
			if told[one] > 1 {
				t.Errorf("%s was told %d times before all were", one.id, told[one])
			}
		}
	})
}
