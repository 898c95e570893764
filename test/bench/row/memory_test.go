package row

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// A waiting request has a stack of 8 KiB, and net/http one of 2 KiB next to it. A deeper call
// before the wait, or a larger frame, doubles the first, and no collection shrinks it.
func TestWaitingRequestKeepsASmallStack(t *testing.T) {
	const waiters, most = 500, 13 << 10
	ctx, dir := t.Context(), t.TempDir()
	b := &bench{Config: Config{Dir: dir, Profiles: dir, Progress: io.Discard}, dir: dir}
	var cs closers
	defer func() {
		var err error
		if cs.closeInto(&err); err != nil {
			t.Error(err)
		}
	}()
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		t.Fatal(err)
	}
	before := stackBytes(t, r)
	q, err := queueUp(ctx, r, "bench", waiters, &cs)
	if err != nil {
		t.Fatal(err)
	}
	cs.add(q.Close)
	if each := (stackBytes(t, r) - before) / waiters; each > most {
		t.Errorf("a waiting request has %d bytes of stack, want at most %d", each, most)
	}
}

// stackBytes reads the memory of all stacks from the server's profiler.
func stackBytes(t *testing.T, r *replica) (n int) {
	t.Helper()
	resp, err := get(t.Context(), "http://"+r.debug+"/debug/pprof/heap?debug=1", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := bytes.Cut(text, []byte("\n# Stack = "))
	if _, err := fmt.Sscan(string(line), &n); err != nil {
		t.Fatalf("no size of the stacks in the profile: %v", err)
	}
	return n
}
