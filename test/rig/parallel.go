package rig

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Main is the TestMain of packages whose tests need nothing but [RunAtOnce].
func Main(m *testing.M, n int) {
	if err := RunAtOnce(n); err != nil {
		fmt.Fprintln(os.Stderr, "the tests cannot begin:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// RunAtOnce lets n tests of this process run at once, unless -parallel sets the number. Most
// tests that start servers wait for leases and deadlines, so more can run than there are
// processors. It is for TestMain, and parses the flags.
func RunAtOnce(n int) error {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(n))
}
