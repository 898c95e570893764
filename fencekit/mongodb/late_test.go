package mongodb

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/test/rig"
)

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open("unchecked", plain)},
		{Name: "filter", Open: open("filter", Update)},
	}
}

// plain is what the check protects.
func plain(
	ctx context.Context, c *mongo.Collection, id any, _ int64, set bson.D, document any,
) error {
	filter := bson.M{"_id": id}
	if len(set) == 0 {
		return c.FindOne(ctx, filter).Decode(document)
	}
	return c.FindOneAndUpdate(ctx, filter, bson.M{"$set": set}).Decode(document)
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	address := start(t)
	for _, way := range ways() {
		kittest.LateWrite(t, fencepost, way, address)
	}
}

// TestFirstWrites: a document without a fence is no refusal, and one that does not exist neither.
func TestFirstWrites(t *testing.T) {
	c := connect(t, start(t))
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": "old", "balance": 100}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"old", "new"} {
		for _, fence := range []int64{9, 10, 10} {
			if err := Update(t.Context(), c, id, fence, nil, new(document)); err != nil {
				t.Errorf("%s, fence %d: %v", id, fence, err)
			}
		}
		err := Update(t.Context(), c, id, 9, nil, new(document))
		if !mongo.IsDuplicateKeyError(err) {
			t.Errorf("%s, stale: %v", id, err)
		}
	}
	if n, err := c.CountDocuments(t.Context(), bson.M{"fence": 10}); err != nil || n != 2 {
		t.Errorf("%d documents have the fence: %v", n, err)
	}
}

// BenchmarkWrite compares a write with and without the check.
func BenchmarkWrite(b *testing.B) { kittest.Cost(b, ways(), start(b)) }

type document struct {
	Balance int
	Fence   uint64
}

// start starts a server with the accounts.
func start(t testing.TB) (address string) {
	t.Helper()
	binary, dir := kittest.Install(t, "ferretdb", "."), t.TempDir()
	server, err := rig.StartServer(t.Context(), dir, func(port int) rig.ProgramConfig {
		return rig.ProgramConfig{
			Binary: binary, Args: []string{"127.0.0.1:" + strconv.Itoa(port), dir},
			Env: []string{"OTEL_SDK_DISABLED=true"},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	c := connect(t, server.Address())
	for _, way := range ways() {
		_, err := c.InsertOne(t.Context(), bson.M{"_id": way.Name, "balance": 100})
		if err != nil {
			t.Fatal(err)
		}
	}
	return server.Address()
}

func connect(t testing.TB, address string) *mongo.Collection {
	t.Helper()
	db, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Disconnect(context.Background()) })
	return db.Database("bank").Collection("account")
}

// update is [Update] or [plain].
type update func(
	ctx context.Context, c *mongo.Collection, id any, fence int64, set bson.D, document any,
) error

// account is a document.
type account struct {
	*mongo.Collection
	id     string
	update update
}

func open(id string, update update) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, address string) (kittest.Account, error) {
		db, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + address))
		if err != nil {
			return nil, err
		}
		return &account{db.Database("bank").Collection("account"), id, update}, nil
	}
}

func (a *account) Close() error { return a.Database().Client().Disconnect(context.Background()) }

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	var found document
	err := a.update(ctx, a.Collection, a.id, int64(fence), nil, &found)
	return found.Balance, err
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	set, found := bson.D{{Key: "balance", Value: balance}}, document{}
	err := a.update(ctx, a.Collection, a.id, int64(fence), set, &found)
	if !mongo.IsDuplicateKeyError(err) {
		return err
	}
	err = a.FindOne(ctx, bson.M{"_id": a.id}).Decode(&found)
	return errors.Join(err, &kittest.Stale{Known: found.Fence})
}
