package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestGuardTellsHowLate: a watch that is behind is asked, and says for how long it is, until that
// is too long; where it is does not go back by what comes late.
func TestGuardTellsHowLate(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	bubble.Test(t, func(t *testing.T) {
		asked, late := 0, time.Duration(0)
		g := newGuard(s.keyspace, 10, func() { asked++ })
		g.lags = func(d time.Duration) { late = d }
		g.goal, g.goalSet = 20, time.Now()
		g.saw(15)
		if g.saw(12); g.at != 15 {
			t.Errorf("it is at %d", g.at)
		}
		for n := 1; n <= 3; n++ {
			<-time.After(time.Second)
			err := g.check(t.Context())
			if want := time.Duration(n) * time.Second; late != want ||
				errors.Is(err, errFeedBehind) != (want > feedTimeout) || asked != min(n, 2) {
				t.Errorf(
					"after %v it is late for %v and asked %d times, and the error is %v", want, late, asked, err,
				)
			}
		}
	})
}
