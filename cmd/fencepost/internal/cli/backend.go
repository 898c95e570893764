package cli

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/tfstate"
)

// backend serves the HTTP backend of Terraform to one command. It is the lease of that command,
// which takes it by LOCK and ends it by UNLOCK.
type backend struct {
	*running
	client *client.Client
	state  tfstate.State
	lock   string

	server   http.Server
	stop     context.CancelFunc
	password string
	begun    time.Time
	used     atomic.Bool
	late     atomic.Bool // a late write was refused

	turn sync.Mutex // of LOCK
	mu   sync.Mutex
	held *client.Held // nil without a lock
	info lockInfo
}

const (
	// maxInfo is the greatest size of a lock's description in bytes.
	maxInfo = 64 << 10
	// stateTimeout bounds a read or write of the state.
	stateTimeout = time.Minute
	// closeTimeout bounds the wait for requests of processes that outlive the command.
	closeTimeout = time.Second

	methodLock   = "LOCK"
	methodUnlock = "UNLOCK"
)

// serve begins to serve on a free port of the loopback interface. When ctx ends, nothing queues for
// the lock any more.
func (b *backend) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, b.stop = context.WithCancel(ctx)
	b.password, b.begun = rand.Text(), time.Now()
	b.server = http.Server{
		Addr: listener.Addr().String(), Handler: b, ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { _ = b.server.Serve(listener) }() // until close
	return nil
}

// close ends the server. It releases nothing.
func (b *backend) close() {
	b.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close()
	}
}

// env says where the state is, whatever the environment said before. Without the password, other
// users of the machine can neither read the state nor lock it.
func (b *backend) env() []string {
	address := "http://" + b.server.Addr + "/state"
	return []string{
		"TF_HTTP_ADDRESS=" + address, "TF_HTTP_UPDATE_METHOD=" + http.MethodPost,
		"TF_HTTP_LOCK_ADDRESS=" + address, "TF_HTTP_LOCK_METHOD=" + methodLock,
		"TF_HTTP_UNLOCK_ADDRESS=" + address, "TF_HTTP_UNLOCK_METHOD=" + methodUnlock,
		"TF_HTTP_USERNAME=fencepost", "TF_HTTP_PASSWORD=" + b.password,
	}
}

// now returns the lock and its description; nil without a lock.
func (b *backend) now() (*client.Held, lockInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.info
}

func (b *backend) keep(held *client.Held, info lockInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held, b.info = held, info
}

// drop releases a lock. A later one, after this was lost, stays.
func (b *backend) drop(held *client.Held) {
	b.mu.Lock()
	if b.held == held {
		b.held, b.info = nil, lockInfo{}
	}
	b.mu.Unlock()
	release(held)
}

// Name of the lock.
func (b *backend) Name() string { return b.lock }

// Check returns why the lock is lost. Without a lock it returns nil.
func (b *backend) Check() error {
	if held, _ := b.now(); held != nil {
		return held.Check()
	}
	return nil
}

// Left returns the time until the deadline of the lock. Without a lock it is far.
func (b *backend) Left() time.Duration {
	if held, _ := b.now(); held != nil {
		return held.Left()
	}
	return time.Until(b.begun.AddDate(1, 0, 0))
}

// Context ends when the lock is lost.
func (b *backend) Context() context.Context {
	if held, _ := b.now(); held != nil {
		return held.Context()
	}
	return context.Background()
}

// Release ends the server, and releases a lock that the command has left.
func (b *backend) Release(ctx context.Context) error {
	b.close()
	held, _ := b.now()
	if held == nil {
		return nil
	}
	return held.Release(ctx)
}
