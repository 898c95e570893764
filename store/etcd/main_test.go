package etcd_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors, as most of those
// that do wait for a lease or a deadline, unless -parallel says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", "8"); err != nil {
			fmt.Fprintln(os.Stderr, "the tests cannot begin:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
