package kittest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/test/rig"
)

// LateWrite runs the scenario, beside that of other ways. With the check A's write is refused and
// reported, and B's stays. Without it, B's is lost.
func LateWrite(t *testing.T, f *Fencepost, way Way, address string) {
	t.Run(way.Name, func(t *testing.T) {
		t.Parallel()
		a := startA(t, f, way, address)
		fenceOfA, err := strconv.ParseUint(await(t, a, saysFence), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		// A is stopped, and does not renew: else this would wait for a minute, and fail.
		held, err := f.Client.Lock(t.Context(), way.lock(), client.Options{TTL: ttl, Holder: "B"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = held.Release(context.Background()) })
		if held.Fence() <= fenceOfA {
			t.Fatalf("B has the fence %d after %d", held.Fence(), fenceOfA)
		}
		account := withdraw(t, way, address, held.Fence())
		if err := a.Continue(); err != nil {
			t.Fatal(err)
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcome := said(t, a, saysOutcome)
		balance, err := account.Read(t.Context(), held.Fence())
		if err != nil {
			t.Fatal(err)
		}
		judge(t, way, outcome, balance)
		if outcome == "stale" {
			f.isReported(t, way.lock(), fenceOfA, held.Fence())
		}
	})
}

// judge tells whether B's write is still there, and how A's ended.
func judge(t *testing.T, way Way, outcome string, balance int) {
	t.Helper()
	want, wantBalance := "stale", start-takesOfB
	switch {
	case way.Unchecked: // A has written what it computed from the balance before B
		want, wantBalance = "written", start-takesOfA
	case way.Broken:
		want = "broken"
	}
	if outcome != want || balance != wantBalance {
		t.Errorf("the late write is %s, and the balance %d; want %s and %d",
			outcome, balance, want, wantBalance)
	}
}

// withdraw is what B does. It leaves the account open.
func withdraw(t *testing.T, way Way, address string, fence uint64) Account {
	t.Helper()
	account, err := way.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = account.Close() })
	balance, err := account.Read(t.Context(), fence)
	if err != nil || balance != start {
		t.Fatalf("B reads %d: %v", balance, err)
	}
	if err := account.Write(t.Context(), fence, balance-takesOfB); err != nil {
		t.Fatal(err)
	}
	return account
}

func startA(t *testing.T, f *Fencepost, way Way, address string) *rig.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := rig.StartProgram(rig.ProgramConfig{
		Binary: self, Log: filepath.Join(t.TempDir(), "a.log"), Env: []string{
			"FENCEKIT_WAY=" + way.Name, "FENCEKIT_ADDRESS=" + address,
			"FENCEPOST_URL=" + f.URL, "FENCEPOST_TOKEN=" + f.Token,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Kill() })
	return a
}

// await waits for a line that begins with a word, and returns what follows.
func await(t *testing.T, a *rig.Program, word string) (value string) {
	t.Helper()
	err := a.Await(t.Context(), word, func(context.Context) error {
		if value = said(t, a, word); value == "" {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// said returns what follows a word at the beginning of a line, or "".
func said(t *testing.T, a *rig.Program, word string) string {
	t.Helper()
	text, err := a.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), word+" ")
	line, _, ended := strings.Cut(after, "\n")
	if !ended {
		return ""
	}
	return line
}
