//go:build race

package client

import (
	"os"
	"runtime"
	"testing"
)

// TestMain lets one thread run Go code, as test/bubble does and explains, which is of another module.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
