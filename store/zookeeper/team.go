package zookeeper

import (
	"math/rand/v2"
	"slices"
)

// spotOf is where a lease is among all connections.
func spotOf(k key) uint64 { return hash64(k.tenant + "," + k.lock + "," + string(k.id)) }

// share tells which connections write, of all replicas, and which of them is this
// replica's. They share the leases that are to be looked at.
func (ls *leases) share(names []string, own string) {
	team := make([]uint64, len(names))
	for i, name := range names {
		team[i] = hash64(name)
	}
	slices.Sort(team)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if self := hash64(own); self == ls.self && slices.Equal(team, ls.team) {
		return
	}
	ls.team, ls.self = team, hash64(own)
	now := ls.clock.now()
	for l := range ls.heap.All() {
		if !l.mine && ls.watches(l) {
			l.due = min(l.due, now+rand.N(max(l.entry.TTL/3, checkInterval)))
		}
	}
	ls.heap.FixAll()
	ls.nudge()
}

// watches reports whether this replica is one of those that look at a lease: the
// connections to which the highest numbers fall by chance, which are others for each
// lease and the same for all who draw them. It decides who reads, and not who may
// remove: that is only who has seen one version for a full TTL. So it does no harm
// if replicas differ about who is there. The caller holds mu.
func (ls *leases) watches(l *lease) bool {
	own, before := draw(ls.self, l.spot), 0
	for _, other := range ls.team {
		if other != ls.self && draw(other, l.spot) > own {
			before++
		}
	}
	return before < watchers
}

// draw mixes two hashes to a number that looks random.
func draw(connection, spot uint64) uint64 {
	x := connection ^ spot
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
