// Package redis tests the scripts of this folder on a real server.
package redis

import (
	"context"
	_ "embed"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/test/rig"
)

//go:embed check.lua
var check string

//go:embed function.lua
var function string

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	script := redis.NewScript(check)
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open("unchecked", plain)},
		{Name: "script", Open: open("script", func(
			ctx context.Context, db *redis.ClusterClient, keys []string, args ...any,
		) *redis.Cmd {
			return script.Run(ctx, db, keys, args...) // EVALSHA, then EVAL if the server lacks it
		})},
		{Name: "function", Open: open("function", func(
			ctx context.Context, db *redis.ClusterClient, keys []string, args ...any,
		) *redis.Cmd {
			return db.FCall(ctx, "fenced", keys, args...)
		})},
	}
}

// plain is what the check protects.
func plain(
	ctx context.Context, db *redis.ClusterClient, keys []string, args ...any,
) *redis.Cmd {
	if len(args) == 1 {
		return db.Do(ctx, "GET", keys[0])
	}
	return db.Do(ctx, "SET", keys[0], args[1])
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one. The
// server is a cluster, which refuses a script whose keys are in two slots.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	server, err := rig.StartRedis(
		t.Context(), filepath.Join(t.TempDir(), "data"), "--cluster-enabled", "yes",
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	db := connect(server.Address())
	t.Cleanup(func() { _ = db.Close() })
	prepare(t, server.Address())
	for _, way := range ways() {
		if err := db.Set(t.Context(), keysOf(way.Name)[0], 100, 0).Err(); err != nil {
			t.Fatal(err)
		}
		kittest.LateWrite(t, fencepost, way, server.Address())
	}
}

// prepare makes the server a cluster of one that has the function.
func prepare(t *testing.T, address string) {
	t.Helper()
	node := redis.NewClient(&redis.Options{Addr: address})
	defer node.Close()
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		info, err := node.ClusterInfo(t.Context()).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(info, err)
		}
	}
	if err := node.FunctionLoad(t.Context(), function).Err(); err != nil {
		t.Fatal(err)
	}
}

// account is a balance in a key, whose fence is in another key of the same slot.
type account struct {
	*redis.ClusterClient
	keys []string
	call call
}

// call reads with one argument, the fence, and writes with two.
type call func(
	ctx context.Context, db *redis.ClusterClient, keys []string, args ...any,
) *redis.Cmd

func open(name string, call call) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, address string) (kittest.Account, error) {
		return &account{connect(address), keysOf(name), call}, nil
	}
}

func connect(address string) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}})
}

func keysOf(name string) []string {
	return []string{"{account:" + name + "}", "{account:" + name + "}:fence"}
}

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	balance, err := a.call(ctx, a.ClusterClient, a.keys, fence).Int()
	return balance, staleOf(err)
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	return staleOf(a.call(ctx, a.ClusterClient, a.keys, fence, balance).Err())
}

// staleOf reads the fence from the error of the check.
func staleOf(err error) error {
	if err == nil {
		return nil
	}
	text, refused := strings.CutPrefix(err.Error(), "STALE_FENCE ")
	if !refused {
		return err
	}
	known, parsing := strconv.ParseUint(text, 10, 64)
	return errors.Join(parsing, &kittest.Stale{Known: known})
}
