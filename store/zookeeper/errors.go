package zookeeper

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/adapter"
)

// unavailable translates an error at the boundary.
func unavailable(err error, doing string, ambiguous bool) *lock.Error {
	e := adapter.Unavailable(err, doing, ambiguous)
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, errRefused) {
		e.Detail = "the store does not let this server in"
	}
	return e
}

// answered reports whether the server itself said that it did not execute a
// request.
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

// harmless reports whether a write with this error cannot have happened and
// never will. [zk.ErrNoServer] is given to what was not sent.
func harmless(err error) bool {
	var unsent *notSent
	return answered(err) || errors.As(err, &unsent) || errors.Is(err, zk.ErrNoServer)
}
