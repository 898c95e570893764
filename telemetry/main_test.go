package telemetry_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Every goroutine that Setup starts must have ended after Shutdown.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
