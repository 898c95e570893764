package sqlkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// Server is a database server that the tests of a package share: it starts at the first of them.
type Server struct {
	// Start is a function of the package rig.
	Start func(ctx context.Context, dir string) (*rig.Database, error)

	once    sync.Once
	dir     string
	running *rig.Database
	err     error
}

// Get starts the server unless it runs.
func (s *Server) Get(t *testing.T) *rig.Database {
	t.Helper()
	s.once.Do(func() {
		s.dir, s.err = os.MkdirTemp("", "fencekit-") //nolint:usetesting // it outlives the test
		if s.err == nil {
			s.running, s.err = s.Start(context.Background(), filepath.Join(s.dir, "data"))
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.running
}

// Close stops the server, and removes its data.
func (s *Server) Close() error {
	var err error
	if s.running != nil {
		err = s.running.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
