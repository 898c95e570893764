package service

import "slices"

// shareStaleWrites drops reports, which are in order, until at most limit are left. It takes from
// the reporter with the most of them, from the lock with the most of that reporter's, the oldest.
// So a reporter with fewer than its equal share loses none, whatever the others send.
func shareStaleWrites(all []StaleWrite, limit int) []StaleWrite {
	type group struct{ reporter, lock string } // lock is "" for all of the reporter's
	count := map[group]int{}
	for _, w := range all {
		count[group{w.Reporter, ""}]++
		count[group{w.Reporter, w.Lock}]++
	}
	for len(all) > limit {
		drop, most := 0, [2]int{}
		for i, w := range all { // the oldest of equals is the last
			n := [2]int{count[group{w.Reporter, ""}], count[group{w.Reporter, w.Lock}]}
			if slices.Compare(n[:], most[:]) >= 0 {
				drop, most = i, n
			}
		}
		count[group{all[drop].Reporter, ""}]--
		count[group{all[drop].Reporter, all[drop].Lock}]--
		all = slices.Delete(all, drop, drop+1)
	}
	return all
}

// mergeStaleWrites returns the reports of both lists, the newest first. A report that repeats
// another one replaces it. So a write with an unknown outcome can be repeated.
func mergeStaleWrites(a, b []StaleWrite) []StaleWrite {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b StaleWrite) int { return b.At.Compare(a.At) })
	found := map[StaleWrite]int{}
	merged := all[:0]
	for _, w := range all {
		same := StaleWrite{
			Lock: w.Lock, Presented: w.Presented, Known: w.Known, Resource: w.Resource, Reporter: w.Reporter,
		}
		if i, is := found[same]; is {
			merged[i].learn(w)
			continue
		}
		found[same] = len(merged)
		merged = append(merged, w)
	}
	return merged
}

// learn takes the end of the hold from an earlier report of the same write, whose replica knew it.
func (w *StaleWrite) learn(from StaleWrite) {
	if w.Ended != "" || from.Ended == "" {
		return
	}
	w.Holder, w.Ended, w.TTL = from.Holder, from.Ended, from.TTL
	w.Late = from.Late + w.At.Sub(from.At)
}

// linesOf returns the reports to log: the newest of each lock, if it was not logged yet.
func linesOf(all []StaleWrite) (lines []StaleWrite) {
	seen := map[string]bool{}
	for _, w := range all {
		if !w.logged && !seen[w.Lock] {
			seen[w.Lock] = true
			lines = append(lines, w)
		}
	}
	return shareStaleWrites(lines, staleWriteLines)
}
