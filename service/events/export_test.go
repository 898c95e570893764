package events

// Hold keeps the log from filing until release is called.
func (l *Log) Hold() (release func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// Kept returns how much is kept, of how many tenants, by the counts and as it is.
func (l *Log) Kept() (events, bytes, tenants int, consistent bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	consistent = l.sums(l.all) == [2]int{l.all.len(), l.all.bytes}
	var sum [2]int
	for _, r := range l.tenants {
		one := l.sums(r)
		consistent = consistent && one == [2]int{r.len(), r.bytes}
		sum[0], sum[1] = sum[0]+one[0], sum[1]+one[1]
	}
	return l.kept.events, l.kept.bytes, len(l.tenants), consistent &&
		sum == [2]int{l.kept.events, l.kept.bytes}
}

func (l *Log) sums(r *ring) [2]int {
	bytes := 0
	for _, rec := range r.records[r.head:] {
		bytes += rec.size
	}
	return [2]int{len(r.records) - r.head, bytes}
}

// Pace is the time between two rounds of filing.
const Pace = pace

// MaxPending is how much may be added before it is filed.
const MaxPending = maxPending
