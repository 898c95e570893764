package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
)

// brokenVariable names the broken store of TestBroken, in the processes that TestSuiteFails
// starts.
const brokenVariable = "STORETEST_BROKEN"

// broken has each broken store, by the case of the suite that must fail with it.
var broken = map[string]func(store.Store) store.Store{
	"fence/grows from holder to holder": func(s store.Store) store.Store { return restarted{s} },
	"renew/is lost after a removal":     func(s store.Store) store.Store { return renewing{s} },
	"remove/only while what it was decided by is there": func(s store.Store) store.Store {
		return heedless{s}
	},
}

// restarted gives every entry the same number.
type restarted struct{ store.Store }

func (s restarted) Enqueue(ctx context.Context, e *lock.Entry) (*lock.Entry, bool, error) {
	placed, written, err := s.Store.Enqueue(ctx, e)
	if placed != nil {
		placed.Number = 1
	}
	return placed, written, err
}

// renewing renews entries that do not exist.
type renewing struct{ store.Store }

func (s renewing) Renew(ctx context.Context, e *lock.Entry) error {
	_ = s.Store.Renew(ctx, e)
	return nil
}

// heedless removes an entry whatever the removal was decided by.
type heedless struct{ store.Store }

func (s heedless) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, _ ...*lock.Entry,
) error {
	return s.Store.Remove(ctx, e, why)
}

// TestSuiteFails runs one case on each broken store, in a process of its own that must fail.
func TestSuiteFails(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range broken {
		t.Run(name, func(t *testing.T) {
			test := "TestBroken/" + strings.ReplaceAll(name, " ", "_")
			pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
			cmd := exec.CommandContext(t.Context(), binary, "-test.run", pattern, "-test.timeout=50s")
			cmd.Env = append(os.Environ(), brokenVariable+"="+name)
			output, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "--- FAIL: "+test+" ") {
				t.Errorf("the case passes on a store that is broken: %v\n%s", err, output)
			}
		})
	}
}

// TestBroken runs the suite on the broken store that the variable names.
func TestBroken(t *testing.T) {
	breaks := broken[os.Getenv(brokenVariable)]
	if breaks == nil {
		return
	}
	storetest.Run(t, storetest.Harness{
		Open:  func(t *testing.T) storetest.Store { return open(t, breaks) },
		NoCut: "no case", NoCompact: "no case", NoFloor: "no case", NoBackup: "no case",
		NoHistory: "no case", NoEarlier: "no case", NoBound: "no case",
	})
}

func open(t *testing.T, breaks func(store.Store) store.Store) storetest.Store {
	server := memory.NewServer(memory.Config{})
	t.Cleanup(server.Close)
	connect := func(t *testing.T) store.Store {
		c := server.Connect(nil)
		t.Cleanup(c.Close)
		return breaks(c)
	}
	return storetest.Store{A: connect(t), B: connect(t), Reopen: connect}
}
