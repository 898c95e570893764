package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/telemetry"
)

// TestRoom: what is kept and what may wait follow from the memory, together a part of it that
// leaves the rest for what is held, down to what no server can do without.
func TestRoom(t *testing.T) {
	t.Parallel()
	most := roomIn(0)
	if most.pending != (batch.Backlog{}) || most.kept.Ends != 0 || most.kept.Figures != 0 || most.events.Bytes != 0 {
		t.Errorf("where nobody says how much memory there is, bounds are not their own: %+v", most)
	}
	before := room{}
	for mib := uint64(16); mib <= 4<<10; mib *= 2 {
		r := roomIn(mib << 20)
		if mib < 4<<10 && (r.kept.Ends < before.kept.Ends || r.kept.Figures < before.kept.Figures || r.pending.InAll.Bytes < before.pending.InAll.Bytes) {
			t.Errorf("with %d MiB there is less room than with half of them: %+v", mib, r)
		}
		before = r
		if mib >= minMemory && mib < 4<<10 {
			checkRoom(t, mib, r)
		}
	}
	if r, want := roomIn(plenty), (batch.Size{Writes: 1 << 16, Bytes: 128 << 20}); r.pending.InAll != want || r.kept.Ends > 4_000_000 || r.kept.Figures != 20_000 {
		t.Errorf("with plenty: %+v", r)
	}
	if r := roomIn(1); r.kept.Ends < 1000 || r.kept.Figures < 100 || r.pending.PerKey.Bytes < 128<<10 || r.pending.PerKey.Writes < 100 {
		t.Errorf("with next to none: %+v", r)
	}
}

// checkRoom holds the bounds against the memory.
func checkRoom(t *testing.T, mib uint64, r room) {
	t.Helper()
	kept := r.kept.Ends*perEnd + r.kept.Figures*perLock
	if r.kept.Ends == 0 || r.kept.Figures == 0 || uint64(kept) > mib<<20/8 {
		t.Errorf("with %d MiB, ends and figures have %d bytes", mib, kept)
	}
	if n := r.pending.InAll.Bytes; n == 0 || uint64(n) > mib<<20/16 {
		t.Errorf("with %d MiB, writes that wait have %d bytes", mib, n)
	}
	all, tenant, key := r.pending.InAll, r.pending.PerTenant, r.pending.PerKey
	if tenant.Bytes > all.Bytes/2 || tenant.Writes > all.Writes/2 || key.Bytes > tenant.Bytes/2 || key.Writes > tenant.Writes/2 {
		t.Errorf("with %d MiB, one tenant or lock has too much of %+v", mib, r.pending)
	}
}

// TestRoomIsPassedOn: the stores and the service are told of their bounds.
func TestRoomIsPassedOn(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(context.WithoutCancel(t.Context())) }()
	c := &config{memoryMB: minMemory}
	want := roomIn(minMemory << 20)
	if e, z := etcdConfig(c, tel).Pending, zookeeperConfig(c, tel).Pending; e != want.pending || z != want.pending {
		t.Errorf("writes wait in etcd's adapter: %+v, in ZooKeeper's: %+v, want %+v", e, z, want.pending)
	}
	closed := etcdStore{&etcd.Store{}, nil}
	if s := serviceConfig(c, tel, closed, nil, &service.Replicas{}, quotas.New(quotas.Config{})); s.Kept != want.kept || s.Events.Bytes != want.events.Bytes {
		t.Errorf("the service keeps %+v and %+v, want %+v", s.Kept, s.Events, want)
	}
}

// TestBeforeTheStore: the collector keeps to the ceiling before the store is opened, which may take
// much memory in a short time.
func TestBeforeTheStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log bytes.Buffer
	c := parsed(t, nil, "--listen", "127.0.0.1:0", "--jwt-secret-file", file(t, secret), "--store", "etcd://127.0.0.1:1", "--memory-mb", "65536")
	if err := serve(ctx, c, io.Discard, &log); err == nil {
		t.Error("a server without a store ends without an error")
	}
	if line := fmt.Sprintf(`"msg":"memory that may be used","bytes":%d`, 64<<30); !strings.Contains(log.String(), line) {
		t.Errorf("a server that has not opened its store keeps to no ceiling: %s", log.String())
	}
}
