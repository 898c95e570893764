// Package other tests the script of this folder.
package other

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
)

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open(plain)},
		{Name: "file", Open: open(checked)},
	}
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	for _, way := range ways() {
		kittest.LateWrite(t, fencepost, way, create(t))
	}
}

// TestNoFence: a fence that is no number replaces neither the file nor its fence.
func TestNoFence(t *testing.T) {
	file := create(t)
	if _, err := checked(t.Context(), file, 34); err != nil {
		t.Fatal(err)
	}
	renamed := create(t)
	for _, fence := range []string{"", "x"} {
		if exec.CommandContext(t.Context(), "./check.sh", file, fence, renamed).Run() == nil {
			t.Errorf("the fence %q is accepted", fence)
		}
	}
	if _, err := checked(t.Context(), file, 33); err == nil {
		t.Error("a lower fence is accepted")
	}
}

// BenchmarkWrite compares a write with and without the check.
func BenchmarkWrite(b *testing.B) { kittest.Cost(b, ways(), create(b)) }

// create makes a file with a balance.
func create(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "account")
	if err := os.WriteFile(path, []byte("100"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replace prints a file, or renames another one to it.
type replace func(ctx context.Context, file string, fence uint64, renamed ...string) (string, error)

// plain is what the check protects.
func plain(ctx context.Context, file string, _ uint64, renamed ...string) (string, error) {
	command := exec.CommandContext(ctx, "cat", file)
	if len(renamed) > 0 {
		command = exec.CommandContext(ctx, "mv", renamed[0], file)
	}
	out, err := command.Output()
	return string(out), err
}

func checked(ctx context.Context, file string, fence uint64, renamed ...string) (string, error) {
	args := append([]string{file, strconv.FormatUint(fence, 10)}, renamed...)
	out, err := exec.CommandContext(ctx, "./check.sh", args...).Output()
	failed := new(exec.ExitError)
	if !errors.As(err, &failed) || failed.ExitCode() != 9 {
		return string(out), err
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), "stale_fence ")
	known, err := strconv.ParseUint(text, 10, 64)
	return "", errors.Join(err, &kittest.Stale{Known: known})
}

// account is a balance in a file.
type account struct {
	file    string
	replace replace
}

func open(replace replace) func(context.Context, string) (kittest.Account, error) {
	return func(_ context.Context, file string) (kittest.Account, error) {
		return &account{file, replace}, nil
	}
}

func (a *account) Close() error { return nil }

func (a *account) Read(ctx context.Context, fence uint64) (int, error) {
	text, err := a.replace(ctx, a.file, fence)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (a *account) Write(ctx context.Context, fence uint64, balance int) error {
	renamed := fmt.Sprintf("%s.%d", a.file, fence)
	if err := os.WriteFile(renamed, []byte(strconv.Itoa(balance)), 0o600); err != nil {
		return err
	}
	_, err := a.replace(ctx, a.file, fence, renamed)
	return err
}
