package main

import (
	"math"
	"testing"
)

// TestMostConnections: there are files left for the store, whatever the limit is.
func TestMostConnections(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{
		0: 0, 256: 128, 1024: 512, 20_000: 19_488, 1 << 20: 65_536, math.MaxUint64: 65_536,
	} {
		if got := mostConnections(files, math.MaxInt64); got != want {
			t.Errorf("of %d files %d are for connections, want %d", files, got, want)
		}
	}
	if got := mostConnections(math.MaxUint64, 1<<30); got != 9709 {
		t.Errorf("with 1 GiB %d are for connections, want 9709", got)
	}
	if n := openFiles(); n == 0 {
		t.Error("no file may be open")
	}
}
