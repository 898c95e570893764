package figures

import "time"

// useWindow is about the time over which utilization is measured.
const useWindow = 5 * time.Minute

// Use says for how long a lock was held recently, as one replica saw it.
type Use struct {
	began        time.Time     // of the window
	busy, before time.Duration // held in the window, up to since, and in that before it
	since        time.Time     // since when it is held in the window; zero if it is free
}

// take notes that the lock is held.
func (u *Use) take(now time.Time) {
	*u = u.until(now)
	if u.since.IsZero() {
		u.since = now
	}
}

// free notes that no entry holds the lock any more.
func (u *Use) free(now time.Time) {
	*u = u.until(now)
	if !u.since.IsZero() {
		u.busy += now.Sub(u.since)
		u.since = time.Time{}
	}
}

// until returns the use with the window in which an instant is.
func (u Use) until(now time.Time) Use {
	if now.Sub(u.began) >= 2*useWindow { // nothing of the time before counts, or it was held all along
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

// Share returns which part of the last five minutes before an instant the lock was held, in
// hundredths. If the replica knows of less, which seen says, it is a part of that.
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
