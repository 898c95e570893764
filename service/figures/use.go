package figures

import "time"

// useWindow is the approximate window of the utilization.
const useWindow = 5 * time.Minute

// Use is how long a lock was held recently, as one replica saw it.
type Use struct {
	began        time.Time     // of the window
	busy, before time.Duration // time held in this window up to since, and in the window before it
	since        time.Time     // start of the hold in this window; zero if the lock is free
}

// take notes that the lock is now held.
func (u *Use) take(now time.Time) {
	*u = u.until(now)
	if u.since.IsZero() {
		u.since = now
	}
}

// free notes that the lock is now free.
func (u *Use) free(now time.Time) {
	*u = u.until(now)
	if !u.since.IsZero() {
		u.busy += now.Sub(u.since)
		u.since = time.Time{}
	}
}

// until returns the use, moved to the window of an instant.
func (u Use) until(now time.Time) Use {
	if now.Sub(u.began) >= 2*useWindow { // nothing older counts, or it was held all along
		u.busy, u.before, u.began = 0, 0, now
		if !u.since.IsZero() {
			u.before, u.since = useWindow, now
		}
		return u
	}
	if end := u.began.Add(useWindow); !now.Before(end) {
		u.before, u.busy, u.began = u.busy, 0, end
		if !u.since.IsZero() {
			u.before += end.Sub(u.since)
			u.since = end
		}
	}
	return u
}

// Share returns for how much of the last five minutes the lock was held, in percent. If the
// replica has watched for less, as seen reports, it is a share of that time.
func (u Use) Share(now time.Time, seen time.Duration) int {
	u = u.until(now)
	in := now.Sub(u.began)
	held := u.busy + time.Duration(float64(u.before)*(1-float64(in)/float64(useWindow)))
	if !u.since.IsZero() {
		held += now.Sub(u.since)
	}
	of := max(min(useWindow, seen), time.Second)
	return min(100, int(100*held/of))
}
