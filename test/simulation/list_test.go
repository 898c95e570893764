package simulation

import (
	"slices"
	"sync"

	"github.com/fencepost/fencepost/service/replicas"
)

// replicaList is the list of replicas, as the store would keep it: a replica is on it a
// while after it started, and for a while after it stopped.
type replicaList struct {
	mu      sync.Mutex
	live    []string
	gone    map[string]bool // those that may have stopped before they were on it
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
		return replicas.Sharing{Self: name, Live: slices.Clone(l.live), Changed: l.changed}
	}
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

func (l *replicaList) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}
