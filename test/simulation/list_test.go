package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/service/replicas"
)

// replicaList is the list of replicas, as the store would keep it: a replica is on it a
// while after it started, and for a while after it stopped.
type replicaList struct {
	mu      sync.Mutex
	live    []string
	gone    map[string]bool          // those that may have stopped before they were on it
	ready   map[string]time.Duration // when they have run for long enough to send webhooks
	cut     map[string]bool          // those that cannot read it
	changed chan struct{}
}

// member returns the list as the replica with the name sees it.
func (l *replicaList) member(name string) func() replicas.Sharing {
	return func() replicas.Sharing {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		s := replicas.Sharing{Self: name, Changed: l.changed}
		if !l.cut[name] {
			away := func(other string) bool { return l.cut[other] }
			s.Live = slices.DeleteFunc(slices.Clone(l.live), away)
		}
		return s
	}
}

// settledAfter is when a replica has run for long enough to send webhooks.
const settledAfter = 20 * time.Second

// settled is like member. If any replica has run for long enough at an instant, the others do not
// count.
func (l *replicaList) settled(name string, now time.Duration) replicas.Sharing {
	s := l.member(name)()
	l.mu.Lock()
	defer l.mu.Unlock()
	young := func(other string) bool { return l.ready[other] > now }
	if old := slices.DeleteFunc(slices.Clone(s.Live), young); len(old) > 0 {
		s.Live = old
	}
	return s
}

// settles notes when a replica has run for long enough.
func (l *replicaList) settles(name string, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready == nil {
		l.ready = map[string]time.Duration{}
	}
	l.ready[name] = at
}

func (l *replicaList) add(name string) {
	l.change(func() {
		if !l.gone[name] {
			l.live = append(l.live, name)
		}
	})
}

func (l *replicaList) remove(name string) {
	l.change(func() {
		if l.gone == nil {
			l.gone = map[string]bool{}
		}
		l.gone[name] = true
		l.live = slices.DeleteFunc(l.live, func(other string) bool { return other == name })
	})
}

// away has others not see a replica, which does not know the list meanwhile.
func (l *replicaList) away(name string, is bool) {
	l.change(func() {
		if l.cut == nil {
			l.cut = map[string]bool{}
		}
		l.cut[name] = is
	})
}

func (l *replicaList) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}
