package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
	"github.com/fencepost/fencepost/test/rig"
)

// minTTL is the shortest lease of the store in memory, whose leases end by timers.
const minTTL = 500 * time.Millisecond

// bugVariable names the bug that the store has. It is set only in the processes
// that TestSuiteCatchesBugs starts.
const bugVariable = "STORETEST_BUG"

// TestMain lets many cases run at once: most of them wait for a lease or a deadline.
func TestMain(m *testing.M) { rig.Main(m, 8) }

// TestMemory shows that the store passes as long as it has no bug.
func TestMemory(t *testing.T) {
	b, limit := bug{}, 4*time.Second
	if does := os.Getenv(bugVariable); does != "" {
		b = bugs()[slices.IndexFunc(bugs(), func(b bug) bool { return b.does == does })]
		limit = time.Second // so that bugs are found soon
	}
	opened := func(t *testing.T) storetest.Store { return open(t, b, limit) }
	storetest.Run(t, storetest.Harness{
		MinTTL: minTTL, Late: time.Second, CallLimit: limit + time.Second, Open: opened, OpenAlone: opened,
		NoHistory: "its server outlives no replica",
		NoBound:   "a write is a call of a function",
	})
}

func open(t *testing.T, with bug, limit time.Duration) storetest.Store {
	b := &broken{bug: with, server: memory.NewServer(memory.Config{Number: with.number, CallLimit: limit})}
	t.Cleanup(b.server.Close)
	cable := memory.NewCable()
	connect := func(t *testing.T, c *client, over *memory.Cable) store.Store {
		sound := b.server.Connect(wire{over, b.loses})
		t.Cleanup(sound.Close)
		c.broken, c.sound = b, sound
		return c
	}
	reopen := func(t *testing.T) store.Store { return connect(t, &client{late: true}, memory.NewCable()) }
	return storetest.Store{
		A: connect(t, &client{}, memory.NewCable()), B: connect(t, &client{second: true}, cable),
		Records: func(s store.Store) store.RecordStore { return s.(*client).sound.(*memory.Client).Records() },
		Reopen: func(t *testing.T) store.Store {
			if b.reopened != nil {
				b.reopened(b)
			}
			return reopen(t)
		},
		CutB: func(_ *testing.T, how storetest.Fault) func() {
			b.deaf.Store(how == storetest.Deaf)
			cable.Cut(memory.Cut(how))
			return func() { cable.Cut("") }
		},
		OpenFloor: func(t *testing.T, floor uint64) (s store.Store, err error) {
			if s = reopen(t); floor != 0 {
				err = b.raise(floor)
			}
			return s, err
		},
		OpenOlder: func(t *testing.T, form int) (store.Store, error) {
			sound, err := b.server.ConnectOlder(memory.NewCable(), form)
			if err != nil && b.opensAny {
				return reopen(t), nil
			}
			if err != nil {
				return nil, err
			}
			t.Cleanup(sound.Close)
			return &client{broken: b, sound: sound, older: true}, nil
		},
		Backup: func(*testing.T) func(*testing.T) {
			backup := b.server.Checkpoint()
			return func(*testing.T) { b.server.Restore(backup) }
		},
		Compact: func(*testing.T) {
			b.server.Compact()
			if b.compacted != nil {
				b.compacted(b)
			}
		},
	}
}

func (b *broken) raise(floor uint64) error {
	err := b.server.Raise(floor)
	if b.floored != nil {
		return b.floored(b, floor, err)
	}
	return err
}

// bugs are all bugs that the suite must catch, each by the case that it names.
func bugs() []bug {
	return slices.Concat(
		numberBugs(), retryBugs(), keyBugs(), contentBugs(), callBugs(),
		leaseBugs(), removeBugs(), removePutBugs(), setBugs(), readBugs(), feedBugs(), trustBugs(), formBugs(), pastBugs(), noticeBugs(),
	)
}

// TestSuiteCatchesBugs runs one case in a process of its own for each bug. The
// process must fail, because of that case. Most of the time they wait, so that
// many can run at once.
func TestSuiteCatchesBugs(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, 12)
	for _, b := range bugs() {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			checkCaught(t, binary, b.does, b.caught)
		})
	}
}

func checkCaught(t *testing.T, binary, does, name string) {
	test := "TestMemory/" + strings.ReplaceAll(name, " ", "_")
	output, err := runBroken(t.Context(), binary, does, test)
	failed := slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: "+test+" ")
	})
	broke := strings.Contains(output, "panic: ") || strings.Contains(output, "DATA RACE") // which shows nothing
	if err == nil || !failed || broke {
		t.Errorf("%q does not find that %s: %v\n%s", name, does, err, output)
	}
	t.Logf("%s:\n%s", does, output)
}

// runBroken runs one test of this binary with a bug.
func runBroken(ctx context.Context, binary, does, test string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	exactly := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	cmd := exec.CommandContext(ctx, binary, "-test.run", exactly, "-test.v", "-test.timeout=50s")
	cmd.Env = append(os.Environ(), bugVariable+"="+does)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
