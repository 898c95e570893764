package dynamodb

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/test/rig"
)

const table = "account"

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open("unchecked", plain)},
		{Name: "condition", Open: open("condition", Update)},
	}
}

// plain is what the check protects. Its expression begins with a comma, which the fence precedes in
// Update.
func plain(
	ctx context.Context, db *dynamodb.Client, table string, key Item, _ uint64,
	set string, values Item,
) (Item, error) {
	if set == "" {
		return get(ctx, db, key)
	}
	answer, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: key, ExpressionAttributeValues: values,
		UpdateExpression: aws.String("SET " + set[1:]), ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	return answer.Attributes, nil
}

func get(ctx context.Context, db *dynamodb.Client, key Item) (Item, error) {
	answer, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return answer.Item, nil
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	address := start(t)
	for _, way := range ways() {
		kittest.LateWrite(t, fencepost, way, address)
	}
}

// TestFirstWrites: an item without a fence is no refusal, and one that does not exist neither.
func TestFirstWrites(t *testing.T) {
	db := connect(start(t))
	for _, id := range []string{"unchecked", "new"} {
		for _, step := range []struct {
			fence   uint64
			refused bool
		}{{9, false}, {10, false}, {10, false}, {9, true}} {
			_, err := Update(t.Context(), db, table, keyOf(id), step.fence, "", nil)
			refused := new(types.ConditionalCheckFailedException)
			if errors.As(err, &refused) != step.refused || err != nil && !step.refused {
				t.Errorf("%s, fence %d: %v", id, step.fence, err)
			}
		}
	}
}

// BenchmarkWrite compares a write with and without the check.
func BenchmarkWrite(b *testing.B) { kittest.Cost(b, ways(), start(b)) }

// start starts an emulator with the accounts.
func start(t testing.TB) (address string) {
	t.Helper()
	// fencekit/servers installs it
	cli := filepath.Join("node_modules", "dynalite", "cli.js")
	dir := filepath.Join(t.TempDir(), "dynalite")
	server, err := rig.StartServer(t.Context(), dir, func(port int) rig.ProgramConfig {
		return rig.ProgramConfig{Binary: "node", Args: []string{
			cli, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--createTableMs", "0",
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	create(t, connect(server.Address()))
	return server.Address()
}

func create(t testing.TB, db *dynamodb.Client) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways() {
		item := keyOf(way.Name)
		item["balance"] = &types.AttributeValueMemberN{Value: "100"}
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String(table), Item: item,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func connect(address string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://" + address), Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

func keyOf(id string) Item { return Item{"id": &types.AttributeValueMemberS{Value: id}} }

// update is [Update] or [plain].
type update func(
	ctx context.Context, db *dynamodb.Client, table string, key Item, fence uint64,
	set string, values Item,
) (Item, error)

// account is an item.
type account struct {
	*dynamodb.Client
	id     string
	update update
}

func open(id string, update update) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, address string) (kittest.Account, error) {
		return &account{connect(address), id, update}, nil
	}
}

func (a *account) Close() error { return nil }

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	item, err := a.update(ctx, a.Client, table, keyOf(a.id), fence, "", Item{})
	if err != nil {
		return 0, err
	}
	balance, err := number(item, "balance")
	return int(balance), err
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	values := Item{":balance": &types.AttributeValueMemberN{Value: strconv.Itoa(balance)}}
	const set = ", balance = :balance"
	_, err := a.update(ctx, a.Client, table, keyOf(a.id), fence, set, values)
	if refused := new(types.ConditionalCheckFailedException); !errors.As(err, &refused) {
		return err
	}
	item, err := get(ctx, a.Client, keyOf(a.id))
	if err != nil {
		return err
	}
	known, err := number(item, "fence")
	return errors.Join(err, &kittest.Stale{Known: known})
}

func number(item Item, name string) (uint64, error) {
	value, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("the item has no " + name)
	}
	return strconv.ParseUint(value.Value, 10, 64)
}
