package tfstate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
	"github.com/fencepost/fencepost/cmd/fencepost/tfstate"
)

func open(t *testing.T) (path string, state tfstate.State) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state")
	state, err := tfstate.Open("file:"+path, "lock")
	if err != nil {
		t.Fatal(err)
	}
	return path, state
}

// TestWritesAtOnce: of holders that write at once, the one with the greatest fence writes last.
func TestWritesAtOnce(t *testing.T) {
	_, state := open(t)
	var writers sync.WaitGroup
	for fence := range uint64(20) {
		writers.Go(func() {
			err := state.Write(t.Context(), fence, strconv.AppendUint(nil, fence, 10))
			if stale := new(tfstate.StaleError); err != nil && !errors.As(err, &stale) {
				t.Errorf("fence %d: %v", fence, err)
			}
		})
	}
	writers.Wait()
	if data, err := state.Read(t.Context()); err != nil || string(data) != "19" {
		t.Errorf("the state is %q: %v", data, err)
	}
}

// TestStoppedProcess: a process that is stopped while it writes delays the next one until its
// deadline, and what that one gave up is not written later.
func TestStoppedProcess(t *testing.T) {
	path, state := open(t)
	stopped, err := os.Create(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := settings.Exclude(stopped); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := state.Write(ctx, 1, []byte("late")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it returns %v", err)
	}
	_ = stopped.Close() // the process continues
	if err := state.Write(t.Context(), 1, []byte("next")); err != nil {
		t.Error(err)
	}
	if data, err := state.Read(t.Context()); err != nil || string(data) != "next" {
		t.Errorf("the state is %q: %v", data, err)
	}
}

// TestLargeState: a state that is larger than the greatest size is an error.
func TestLargeState(t *testing.T) {
	path, state := open(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, tfstate.MaxSize+32); err != nil {
		t.Fatal(err)
	}
	if data, err := state.Read(t.Context()); err == nil {
		t.Errorf("%d bytes are read", len(data))
	}
}

// TestUnreadableFence: a fence that is no number protects the state from all writes.
func TestUnreadableFence(t *testing.T) {
	path, state := open(t)
	if err := os.WriteFile(path+".fence", []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := state.Raise(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "must be a number") {
		t.Errorf("it returns %v", err)
	}
}

// TestLinkToAState: a link leads to the same state and fence as the path of the file, whether the
// file exists yet or not.
func TestLinkToAState(t *testing.T) {
	path, state := open(t)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := tfstate.Open("file:"+link, "lock"); err == nil {
		t.Error("a link to no file is opened")
	}
	if err := state.Write(t.Context(), 1, []byte("first")); err != nil {
		t.Fatal(err)
	}
	linked, err := tfstate.Open("file:"+link, "lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := linked.Write(t.Context(), 2, []byte("second")); err != nil {
		t.Error(err)
	}
	if data, err := state.Read(t.Context()); err != nil || string(data) != "second" {
		t.Errorf("the state is %q: %v", data, err)
	}
	if stale := new(tfstate.StaleError); !errors.As(state.Raise(t.Context(), 1), &stale) {
		t.Error("the fence was not raised")
	}
}
