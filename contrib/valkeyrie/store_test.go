package valkeyrie_test

import (
	"os"
	"testing"

	"github.com/kvtools/valkeyrie/store"
	"github.com/kvtools/valkeyrie/testsuite"

	"github.com/fencepost/fencepost/client"
	fencepost "github.com/fencepost/fencepost/contrib/valkeyrie"
)

func TestLock(t *testing.T) { testsuite.RunTestLock(t, open(t)) }

func TestLockTTL(t *testing.T) { testsuite.RunTestLockTTL(t, open(t), open(t)) }

// open returns a store at the server of clients/with-server, which make contrib-valkeyrie starts.
func open(t *testing.T) store.Store {
	t.Helper()
	s, err := fencepost.Open(t.Context(), []string{os.Getenv("FENCEPOST_URL")},
		client.Config{Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
