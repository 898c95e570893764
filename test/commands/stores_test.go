package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// The tests of this file need the servers of fencekit, whose make target runs them.

func TestStoresPostgreSQL(t *testing.T) {
	t.Parallel()
	server, err := rig.StartPostgreSQL(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	address := "postgres://postgres@" + server.Address() + "/postgres?sslmode=disable"
	keepsAState(t, "postgresql", address)
	refusesLateWrites(t, "postgresql", address)
}

func TestStoresS3(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = filepath.Join("..", "..", "fencekit", "s3", "versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build versitygw: %v: %s", err, out)
	}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "states"), 0o700); err != nil {
		t.Fatal(err)
	}
	server, err := rig.StartServer(t.Context(), filepath.Join(dir, "log"),
		func(port int) rig.ProgramConfig {
			return rig.ProgramConfig{
				Binary: filepath.Join(dir, "versitygw"),
				Args:   []string{"--port", "127.0.0.1:" + strconv.Itoa(port), "posix", data},
				Env:    []string{"ROOT_ACCESS_KEY=commands", "ROOT_SECRET_KEY=commands"},
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	const address = "s3://states/a b+c/KEY" // with bytes that a signature escapes
	env := []string{
		"AWS_ENDPOINT_URL=http://" + server.Address(), "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=commands", "AWS_SECRET_ACCESS_KEY=commands",
	}
	keepsAState(t, "s3", address, env...)
	refusesLateWrites(t, "s3", address, env...)
}
