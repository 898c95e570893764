package etcd

import (
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// errLeaseGone means that etcd does not have the lease, any more or yet.
var errLeaseGone = errors.New("lease not found")

// unavailable translates an etcd error at the boundary. unknown means that one of the attempts
// may have taken effect, even if the last one did not.
func unavailable(err error, doing string, unknown bool) *lock.Error {
	e := store.Unavailable(err, doing, unknown)
	if isNoSpace(err) {
		e.Detail = "the store is out of space and accepts no new entries; " +
			"renewing and releasing still work"
		e.RetryAfter = 10 * time.Second
	}
	return e
}

// refused reports whether etcd stated that a write did not and will not run. A write without such
// an answer may still commit, up to 7 s after the proposal.
func refused(err error) bool {
	if isTooLarge(err) {
		return true
	}
	switch description(err) {
	case description(rpctypes.ErrGRPCRequestTooManyRequests),
		description(rpctypes.ErrGRPCLeaseNotFound),
		description(rpctypes.ErrGRPCPermissionDenied),
		description(rpctypes.ErrGRPCInvalidAuthToken),
		"there is no address available", "there is no connection available":
		return true
	}
	return false
}

// isTooLarge reports whether this process or etcd rejected a request for its size.
func isTooLarge(err error) bool {
	text := description(err)
	return text == description(rpctypes.ErrGRPCRequestTooLarge) ||
		strings.HasPrefix(text, "trying to send message larger than max")
}

// isNoSpace reports whether etcd reports that it is full. It also reports so after it has run the
// very write that exceeded its quota, so the caller has to check the write.
func isNoSpace(err error) bool {
	return description(err) == description(rpctypes.ErrGRPCNoSpace)
}

func isLeaseNotFound(err error) bool {
	return errors.Is(err, errLeaseGone) ||
		description(err) == description(rpctypes.ErrGRPCLeaseNotFound)
}

func isLeaseExists(err error) bool {
	return description(err) == description(rpctypes.ErrGRPCLeaseExist)
}

func isCompacted(err error) bool {
	return description(err) == description(rpctypes.ErrGRPCCompacted)
}

func isUnavailable(err error) bool {
	var s interface{ GRPCStatus() *status.Status }
	return errors.As(err, &s) && s.GRPCStatus().Code() == codes.Unavailable
}

func description(err error) string {
	if err == nil {
		return ""
	}
	// Not status.FromError, which gives a wrapped status the wrapper's text.
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Message()
	}
	return err.Error()
}
