package drive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

func TestStoreInEtcd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	binary, err := rig.BuildEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := rig.StartEtcd(ctx, rig.EtcdConfig{Dir: t.TempDir(), Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	writer, reader := client(t, etcd), client(t, etcd)
	defer writer.Close()
	store, err := drive.ObserveEtcd(ctx, reader, "acme", history.NewRecorder().Now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	const entries = "/fencepost/v1/entries/"
	for _, key := range []string{"acme/l/e1", "other/l/e2", "acme/l/e3", "acme/m/e4"} {
		if _, err := writer.Put(ctx, entries+key, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	queue, err := store.AwaitQueue(ctx, "l", 2)
	if diff := cmp.Diff([]string{"e1", "e3"}, queue); err != nil || diff != "" {
		t.Fatalf("AwaitQueue(l, 2): %v (-want +got):\n%s", err, diff)
	}
	if _, err := store.Expire(ctx, "e3"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AwaitLeft(ctx, "e3"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Expire(ctx, "e3"); !errors.Is(err, drive.ErrNotThere) {
		t.Errorf("Expire(e3) again = %v, want ErrNotThere", err)
	}
	release := clientv3.OpPut("/fencepost/v1/ended/0001/x", `[{"id":"e1","reason":"released","at_ms":1}]`)
	if _, err := writer.Txn(ctx).Then(clientv3.OpDelete(entries+"acme/l/e1"), release).Commit(); err != nil {
		t.Fatal(err)
	}
	truth, err := store.Truth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var ends []string
	for _, life := range truth.Entries("l") {
		ends = append(ends, life.Entry+" "+life.Reason)
	}
	if diff := cmp.Diff([]string{"e1 released", "e3 "}, ends); diff != "" {
		t.Errorf("Entries(l) (-want +got):\n%s", diff)
	}
	if err := truth.Orphans(); !errors.Is(err, history.ErrOrphan) {
		t.Errorf("Orphans() = %v, want e4", err)
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if err := store.AwaitEmpty(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitEmpty() = %v while e4 is there", err)
	}
}

func client(t *testing.T, etcd *rig.Etcd) *clientv3.Client {
	t.Helper()
	c, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
