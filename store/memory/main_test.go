package memory_test

import (
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// TestMain lets many cases run at once: most of them wait for a lease or a deadline.
func TestMain(m *testing.M) { rig.Main(m, 8) }
