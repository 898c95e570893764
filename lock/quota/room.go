package quota

import (
	"maps"
	"time"
)

// sweepEvery is the time between two times that a full map is gone through.
const sweepEvery = time.Second

// MakeRoom has a map of those who ask take one more without having more than most. It forgets who is
// idle, of whom nothing has to be remembered, at most once in a second: swept is when it did last. If
// nobody is, somebody is forgotten.
func MakeRoom[K comparable, V any](all map[K]V, most int, swept *time.Time, now time.Time, idle func(V) bool) {
	if len(all) < most {
		return
	}
	if now.Sub(*swept) >= sweepEvery {
		*swept = now
		maps.DeleteFunc(all, func(_ K, one V) bool { return idle(one) })
	}
	for key := range all {
		if len(all) < most {
			return
		}
		delete(all, key)
	}
}
