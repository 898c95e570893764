package handlers_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/test/rig"
)

// shared is what all tests of the package use: one store, one log, three replicas.
// TestMain makes it and ends it; a test that needs another tenant, replica or
// verifier makes its own.
var shared *world

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := rig.RunAtOnce(16); err != nil {
		fmt.Fprintln(os.Stderr, "the tests cannot begin:", err)
		return 1
	}
	var err error
	if shared, err = newWorld(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests cannot begin:", err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(
		describedIsTested(), shared.checkMetrics(), shared.close(), shared.journal.check(), goleak.Find(),
	); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL after the tests:", err)
		return 1
	}
	return code
}

// describedIsTested fails if an answer stands in the description that no test was
// given. It looks only if all tests ran.
func describedIsTested() error {
	partial := false
	flag.Visit(func(f *flag.Flag) {
		partial = partial || strings.HasPrefix(f.Name, "test.fuzz") || f.Name == "test.run" ||
			f.Name == "test.skip" || f.Name == "test.list"
	})
	if unseen := checker().Unseen(); !partial && len(unseen) > 0 {
		return fmt.Errorf("no test was answered with %q", unseen)
	}
	return nil
}
