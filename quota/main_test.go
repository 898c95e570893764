package quota_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is a book that runs, on a connection that can be cut.
type replica struct {
	*quota.Book
	records store.RecordStore
	cable   *memory.Cable
	log     *bytes.Buffer
}

// run has a test in virtual time, with two replicas.
func run(t *testing.T, test func(t *testing.T, a, b *replica)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		t.Cleanup(server.Close)
		test(t, follow(t, server), follow(t, server))
	})
}

func follow(t *testing.T, server *memory.Server) *replica {
	t.Helper()
	r := &replica{cable: memory.NewCable(), log: new(bytes.Buffer)}
	client := server.Connect(r.cable)
	r.records = client.Records()
	r.Book = quota.New(
		quota.Config{Records: r.records, Logger: slog.New(slog.NewTextHandler(r.log, nil))},
	)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		client.Close()
	})
	settle()
	return r
}

// settle waits until a change holds at all replicas.
func settle() { <-time.After(time.Second) }

func operator() audit.Who {
	return audit.Who{
		Subject: "ops", Tenant: "home", Scope: "admin", Address: "192.0.2.7", RequestID: "r1",
	}
}

// sets has an operator set the limits of a tenant.
func (r *replica) sets(t *testing.T, tenant string, o quota.Overrides) *quota.State {
	t.Helper()
	s, err := r.Set(
		t.Context(), quota.Change{Tenant: tenant, Overrides: o, Reason: "a migration", By: operator()},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
