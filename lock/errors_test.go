package lock_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

func TestErrorIsItsCode(t *testing.T) {
	err := fmt.Errorf("renew: %w", &lock.Error{Code: lock.StoreUnavailable, Cause: io.ErrUnexpectedEOF})
	for _, c := range []struct {
		target error
		want   bool
	}{
		{lock.StoreUnavailable, true},
		{io.ErrUnexpectedEOF, true},
		{lock.Lost, false},
		{io.EOF, false},
		{errors.New("store_unavailable"), false},
		{&lock.Error{Code: lock.StoreUnavailable}, false},
	} {
		if got := errors.Is(err, c.target); got != c.want {
			t.Errorf("errors.Is(err, %#v) = %t, want %t", c.target, got, c.want)
		}
	}
	var typed *lock.Error
	if !errors.As(err, &typed) || typed.Code != lock.StoreUnavailable {
		t.Errorf("errors.As found %v", typed)
	}
}

func TestErrorFindsTheCodeOfItsCause(t *testing.T) {
	err := &lock.Error{Code: lock.Internal, Cause: &lock.Error{Code: lock.Lost}}
	if !errors.Is(err, lock.Internal) || !errors.Is(err, lock.Lost) {
		t.Errorf("%v is not both of its codes", err)
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&lock.Error{Code: lock.Draining}, "draining"},
		{&lock.Error{Code: lock.Internal, Cause: io.EOF}, "internal: EOF"},
		{&lock.Error{Code: lock.Internal, Detail: "d", Cause: io.EOF}, "internal: d: EOF"},
		{lock.Errorf(lock.NotFound, "no lock %q", "a"), `not_found: no lock "a"`},
		{lock.Invalid("ttl_seconds", "is below %d", 2), "invalid_request: ttl_seconds is below 2"},
		{lock.LostBecause(lock.Revoked), "lock_lost: the entry is gone: revoked"},
		{lock.Held, "lock_held"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("Error() = %q, want %q", got, c.want)
		}
	}
}

func TestConstructorsFillTheFields(t *testing.T) {
	if e := lock.Invalid("ttl_seconds", "is bad"); e.Code != lock.InvalidRequest || e.Field != "ttl_seconds" {
		t.Errorf("Invalid = %+v", e)
	}
	if e := lock.LostBecause(lock.Expired); e.Code != lock.Lost || e.Reason != lock.Expired {
		t.Errorf("LostBecause = %+v", e)
	}
	if e := lock.Errorf(lock.Deadlock, "x"); e.Code != lock.Deadlock || e.Field != "" || e.OutcomeUnknown {
		t.Errorf("Errorf = %+v", e)
	}
}
