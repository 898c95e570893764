package etcd

import (
	"context"
	"errors"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/test/rig"
)

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open("unchecked", plain)},
		{Name: "transaction", Open: open("transaction", Do)},
	}
}

// plain is what the check protects.
func plain(
	ctx context.Context, kv clientv3.KV, _ string, _ uint64, ops ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return kv.Txn(ctx).Then(ops...).Commit()
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	address := start(t)
	for _, way := range ways() {
		kittest.LateWrite(t, fencepost, way, address)
	}
}

// TestNumbersAreCompared: 10 is greater than 9, and equal fences pass. The first write finds no
// fence.
func TestNumbersAreCompared(t *testing.T) {
	db := connect(t, start(t))
	for _, step := range []struct {
		fence   uint64
		refused string
	}{{9, ""}, {10, ""}, {10, ""}, {9, "0000000000000010"}, {1<<53 - 1, ""}} {
		_, err := Do(t.Context(), db, "fence", step.fence, clientv3.OpPut("key", "value"))
		stale := new(Stale)
		if errors.As(err, &stale); stale.Known != step.refused || err != nil && stale.Known == "" {
			t.Errorf("fence %d: %v", step.fence, err)
		}
	}
}

// BenchmarkWrite compares a write with and without the check.
func BenchmarkWrite(b *testing.B) { kittest.Cost(b, ways(), start(b)) }

// start starts an etcd with the accounts.
func start(t testing.TB) (address string) {
	t.Helper()
	binary, err := rig.BuildEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := rig.StartEtcd(t.Context(), rig.EtcdConfig{Dir: t.TempDir(), Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	address = server.Endpoints()[0]
	db := connect(t, address)
	for _, way := range ways() {
		if _, err := db.Put(t.Context(), keyOf(way.Name), "100"); err != nil {
			t.Fatal(err)
		}
	}
	return address
}

func connect(t testing.TB, address string) *clientv3.Client {
	t.Helper()
	db, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func keyOf(name string) string { return "account/" + name }

// do is [Do] or [plain].
type do func(
	ctx context.Context, kv clientv3.KV, key string, fence uint64, ops ...clientv3.Op,
) (*clientv3.TxnResponse, error)

// account is a balance in a key. Its fence is in another key.
type account struct {
	*clientv3.Client
	key string
	do  do
}

func open(name string, do do) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, address string) (kittest.Account, error) {
		db, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
		return &account{db, keyOf(name), do}, err
	}
}

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	answer, err := a.do(ctx, a.Client, a.key+"/fence", fence, clientv3.OpGet(a.key))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(answer.Responses[0].GetResponseRange().Kvs[0].Value))
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	value := strconv.Itoa(balance)
	_, err := a.do(ctx, a.Client, a.key+"/fence", fence, clientv3.OpPut(a.key, value))
	if stale := new(Stale); errors.As(err, &stale) {
		known, err := strconv.ParseUint(stale.Known, 10, 64)
		return errors.Join(err, &kittest.Stale{Known: known})
	}
	return err
}
