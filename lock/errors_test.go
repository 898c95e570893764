package lock_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

func TestErrorIsItsCode(t *testing.T) {
	err := fmt.Errorf(
		"renew: %w", &lock.Error{Code: lock.StoreUnavailable, Cause: io.ErrUnexpectedEOF},
	)
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
