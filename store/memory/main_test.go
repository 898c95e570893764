package memory_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// TestMain lets many cases run at once: most of them wait for a lease or a deadline.
func TestMain(m *testing.M) {
	if err := rig.RunAtOnce(8); err != nil {
		fmt.Fprintln(os.Stderr, "the tests cannot begin:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
