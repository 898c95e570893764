// Package kittest is the one scenario that each resource of the kit is tested with, on a real
// server: holder A reads, its process is stopped for longer than its lease, B acquires the lock
// and writes, A wakes up and writes.
//
// A test names its ways to write in TestMain, since A is another process of the test binary:
//
//	func TestMain(m *testing.M) { kittest.Main(m, ways()) }
//
//	func TestLateWrite(t *testing.T) {
//		f := kittest.StartFencepost(t)
//		for _, way := range ways() {
//			kittest.LateWrite(t, f, way, address)
//		}
//	}
package kittest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/test/rig"
)

// Account is what two holders write to: a balance that each reads before it writes it.
type Account interface {
	// Read returns the balance. With the check it also raises the fence.
	Read(ctx context.Context, fence uint64) (balance int, err error)
	// Write returns a [Stale] if the check refuses the write.
	Write(ctx context.Context, fence uint64, balance int) error
	Close() error
}

// Way is one way to write to a resource.
type Way struct {
	// Name of the subtest; the lock is account:NAME.
	Name string
	// Unchecked is a way without the check, whose damage the test shows.
	Unchecked bool
	// Broken means that the resource ends the late write with another error than [Stale].
	Broken bool
	// Open opens account 7. A and B call it, each in its process.
	Open func(ctx context.Context, address string) (Account, error)
}

func (w Way) lock() string { return "account:" + w.Name }

// Stale is the error of a write that the check refused.
type Stale struct {
	Known uint64 // the greatest fence that the resource has seen
}

func (s *Stale) Error() string {
	return fmt.Sprintf("a holder with the fence %d has written", s.Known)
}

const (
	ttl      = 5 * time.Second // A, on a busy machine, has to check its lease before it ends
	start    = 100             // balance of the account
	takesOfA = 10
	takesOfB = 30
)

// Main runs the tests and then closes what they share, or is A if a test started it.
func Main(m *testing.M, ways []Way, closers ...func() error) {
	name, isWorker := os.LookupEnv("FENCEKIT_WAY")
	if !isWorker {
		os.Exit(run(m, closers))
	}
	for _, way := range ways {
		if way.Name == name {
			work(context.Background(), way)
			os.Exit(0)
		}
	}
	fmt.Println("there is no way", name)
	os.Exit(1)
}

func run(m *testing.M, closers []func() error) int {
	err := rig.RunAtOnce(8) // they wait for leases
	code := 1
	if err == nil {
		code = m.Run()
	}
	for _, close := range closers {
		err = errors.Join(err, close())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

func connect(url, token string) (*client.Client, error) {
	return client.New(client.Config{URLs: []string{url}, Token: client.Bearer(token)})
}
