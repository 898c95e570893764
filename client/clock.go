package client

import "time"

// reading is what the clocks show at an instant, each since an origin of its own.
type reading struct {
	monotonic time.Duration // stands still while the machine is suspended, on Linux
	boot      time.Duration // like monotonic, and passes while suspended; 0 where there is none
	wall      time.Duration // may be set, forward and back
}

// clock reads all clocks.
type clock func() reading

// since returns how much time passed since an earlier reading. Of two clocks it believes the
// one by which more time passed: a lock that ends too early costs a retry, one that ends too
// late costs data. Without a boot clock the wall clock shows a suspension, so a wall clock that
// is set forward ends locks early.
func (r reading) since(earlier reading) time.Duration {
	other := r.wall - earlier.wall
	if r.boot != 0 {
		other = r.boot - earlier.boot
	}
	return max(r.monotonic-earlier.monotonic, other)
}

// readClocks returns the clock of the machine. Monotonic readings count from start.
func readClocks(start time.Time) clock {
	return func() reading {
		now := time.Now()
		return reading{
			monotonic: now.Sub(start), boot: sinceBoot(), wall: time.Duration(now.UnixNano()),
		}
	}
}
