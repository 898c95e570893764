package s3

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/test/rig"
)

const bucket = "bank"

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open("unchecked", plain)},
		{Name: "if-match", Open: open("if-match", Put)},
	}
}

// plain is what the check protects.
func plain(
	ctx context.Context, db *s3.Client, bucket, key string, fence uint64, value *string,
) (string, error) {
	if value == nil {
		found, err := get(ctx, db, bucket, key)
		return found.value, err
	}
	return *value, unconditional(ctx, db, key, strconv.FormatUint(fence, 10)+"\n"+*value)
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	address := start(t)
	for _, way := range ways() {
		kittest.LateWrite(t, fencepost, way, address)
	}
}

// TestWritesAtOnce: of holders that read the same object at once, the one with the greatest fence
// writes last. The object does not exist before.
func TestWritesAtOnce(t *testing.T) {
	db := connect(start(t))
	var writers sync.WaitGroup
	for fence := range uint64(10) {
		writers.Go(func() {
			value := strconv.FormatUint(fence, 10)
			_, err := Put(t.Context(), db, bucket, "new", fence, &value)
			if stale := new(Stale); err != nil && !errors.As(err, &stale) {
				t.Errorf("fence %d: %v", fence, err)
			}
		})
	}
	writers.Wait()
	found, err := get(t.Context(), db, bucket, "new")
	if err != nil || found.fence != 9 || found.value != "9" {
		t.Errorf("the object has %+v: %v", found, err)
	}
}

// TestETagIsOfTheContent: a put with other metadata keeps the ETag. A fence in the metadata alone
// would let a late If-Match pass.
func TestETagIsOfTheContent(t *testing.T) {
	db := connect(start(t))
	var etags [2]string
	for i, fence := range []string{"33", "34"} {
		answer, err := db.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(bucket), Key: aws.String("metadata"),
			Metadata: map[string]string{"fence": fence},
		})
		if err != nil {
			t.Fatal(err)
		}
		etags[i] = *answer.ETag
	}
	if etags[0] != etags[1] {
		t.Errorf("the ETags are %v", etags)
	}
}

// BenchmarkWrite compares a write with and without the check.
func BenchmarkWrite(b *testing.B) { kittest.Cost(b, ways(), start(b)) }

// start starts a server with the accounts.
func start(t testing.TB) (address string) {
	t.Helper()
	binary := kittest.Install(t, "versitygw", "github.com/versity/versitygw/cmd/versitygw")
	dir := t.TempDir()
	log, data := filepath.Join(dir, "versitygw"), t.TempDir()
	// Not --sidecar: a GET can then have the ETag of one PUT with the content of another.
	server, err := rig.StartServer(t.Context(), log, func(port int) rig.ProgramConfig {
		return rig.ProgramConfig{
			Binary: binary, Args: []string{
				"--port", "127.0.0.1:" + strconv.Itoa(port), "posix", data,
			},
			Env: []string{"ROOT_ACCESS_KEY=fencekit", "ROOT_SECRET_KEY=fencekit"},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	db := connect(server.Address())
	_, err = db.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways() {
		if err := unconditional(t.Context(), db, way.Name, "0\n100"); err != nil {
			t.Fatal(err)
		}
	}
	return server.Address()
}

func connect(address string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + address), Region: "us-east-1", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "fencekit", SecretAccessKey: "fencekit"}, nil
		}),
	})
}

func unconditional(ctx context.Context, db *s3.Client, key, content string) error {
	_, err := db.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(content),
	})
	return err
}

// write is [Put] or [plain].
type write func(
	ctx context.Context, db *s3.Client, bucket, key string, fence uint64, value *string,
) (string, error)

// account is an object.
type account struct {
	*s3.Client
	key   string
	write write
}

func open(key string, write write) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, address string) (kittest.Account, error) {
		return &account{connect(address), key, write}, nil
	}
}

func (a *account) Close() error { return nil }

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	value, err := a.write(ctx, a.Client, bucket, a.key, fence, nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(value)
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	value := strconv.Itoa(balance)
	_, err := a.write(ctx, a.Client, bucket, a.key, fence, &value)
	if stale := new(Stale); errors.As(err, &stale) {
		return &kittest.Stale{Known: stale.Known}
	}
	return err
}
