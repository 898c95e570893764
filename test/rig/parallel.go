package rig

import (
	"flag"
	"strconv"
)

// RunAtOnce lets n tests of this process run at once, unless -parallel says how many.
// Most of those that start servers wait for leases and deadlines, so that more can run
// than there are processors. It is for TestMain, and parses the flags.
func RunAtOnce(n int) error {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(n))
}
