package quota_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock/quota"
)

// TestMakeRoom: a full map is not gone through for each who comes, but once in a second, and then those
// are forgotten who are idle.
func TestMakeRoom(t *testing.T) {
	const most = 3
	var swept time.Time
	now, looks, idle := time.Now(), 0, false
	all := map[int]bool{}
	come := func(who int) {
		quota.MakeRoom(all, most, &swept, now, func(bool) bool {
			looks++
			return idle
		})
		all[who] = true
	}
	for who := range 100 {
		come(who)
	}
	if len(all) != most || looks != most {
		t.Errorf("%d are remembered, and %d looks were taken at them", len(all), looks)
	}
	now, idle = now.Add(time.Second), true
	if come(100); len(all) != 1 || looks != 2*most {
		t.Errorf("a second later %d are remembered, after %d looks", len(all), looks)
	}
}
