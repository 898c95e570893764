package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
)

// testStore is a store on a member of its own.
func testStore(t *testing.T, cfg EmbeddedConfig, by func(*Conn)) (*Store, *member) {
	t.Helper()
	cfg.Dir = t.TempDir()
	conn, m := startIn(t, cfg)
	t.Cleanup(func() { end(t, conn) })
	by(conn)
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, m
}

func testEntry(name, id string) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(id), Tenant: "acme", Holder: "w", TTL: time.Hour, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
	}
}

// answered repeats a call that a busy machine did not answer in time.
func answered(call func() error) error {
	for {
		var why *lock.Error
		err := call()
		if !errors.As(err, &why) || why.Code != lock.StoreUnavailable ||
			strings.Contains(why.Detail, "out of space") {
			return err
		}
	}
}

// TestRoom: what was admitted counts until it is sure to be in what the store reports as used, two
// flushes later.
func TestRoom(t *testing.T) {
	var r room
	for i, c := range []struct {
		bytes int
		used  int64
		want  bool
	}{
		{400, 0, true}, // 600 in the file
		{200, 0, true},
		{10, 0, false},
		{10, 100, false}, // all of it may still be under way
		{10, 890, false},
		{200, 600, true}, // now it is in what is used
		{10, 600, false},
	} {
		if got := r.admit(c.bytes, Size{c.used, 1000}); got != c.want {
			t.Errorf("%d: %d bytes next to %d: %v, want %v", i, c.bytes, c.used, got, c.want)
		}
	}
}

// TestBareRemovalOfUnknownOutcome: a removal's first attempt is lost, the second one
// finds no space for its record, and the third one, without a record, is executed and
// its answer is lost. The release was done.
func TestBareRemovalOfUnknownOutcome(t *testing.T) {
	attempt := 0
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if !strings.Contains(r.String(), "request_delete_range") {
				return do()
			}
			switch attempt++; attempt {
			case 1:
				return nil, rpctypes.ErrGRPCTimeout
			case 2:
				return nil, rpctypes.ErrGRPCNoSpace
			case 3:
				_, _ = do()
				return nil, rpctypes.ErrGRPCTimeout
			}
			return do()
		})
	})
	e, _, err := s.Enqueue(t.Context(), testEntry("a", "held"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), e, lock.Released); err != nil || attempt != 4 {
		t.Errorf("Remove = %v after %d attempts", err, attempt)
	}
	if err := s.Remove(t.Context(), e, lock.Released); !errors.Is(err, lock.Lost) {
		t.Errorf("Remove again = %v, want %s", err, lock.Lost)
	}
}
