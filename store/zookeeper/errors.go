package zookeeper

import (
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// reports records logged damage to nodes, so that it is not logged at every list.
type reports struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// reportAgain is the time after which the same report is logged again.
const reportAgain = 10 * time.Minute

// report logs what is wrong with a node, at most once in [reportAgain].
func (t *tree) report(path, what string, args ...any) {
	r, now := &t.reported, time.Now()
	r.mu.Lock()
	at, known := r.last[path+what]
	if known = known && now.Sub(at) < reportAgain; !known {
		if r.last == nil || len(r.last) >= 10_000 {
			r.last = map[string]time.Time{}
		}
		r.last[path+what] = now
	}
	r.mu.Unlock()
	if !known {
		t.log.Error(what, append([]any{"path", path}, args...)...)
	}
}

// unavailable translates an error at the boundary.
func unavailable(err error, doing string, unknown bool) *lock.Error {
	e := store.Unavailable(err, doing, unknown)
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, errRefused) {
		e.Detail = "the store does not let this server in"
	}
	return e
}

// answered reports whether the server itself stated that it did not run a request.
func answered(err error) bool {
	for _, definite := range []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL,
		zk.ErrNoChildrenForEphemerals, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrInvalidPath,
	} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

// harmless reports whether a write with this error cannot have happened and never will. Unsent
// requests get [zk.ErrNoServer].
func harmless(err error) bool {
	var unsent *notSent
	return answered(err) || errors.As(err, &unsent) || errors.Is(err, zk.ErrNoServer)
}

// broke reports whether a request ended with its connection, and may be repeated on the next one.
func broke(err error) bool {
	var unsent *notSent
	return errors.Is(err, errSilent) || errors.Is(err, errEnded) || errors.As(err, &unsent) ||
		errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
}
