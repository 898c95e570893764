package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	sigStop     = syscall.SIGSTOP
	sigContinue = syscall.SIGCONT
)

// ReplicaConfig says how to run one API server.
type ReplicaConfig struct {
	// Binary is the server, see BuildAPI.
	Binary string
	// Store is the --store flag: an etcd:// or zookeeper:// address, or
	// "embedded", which is also the meaning of "".
	Store string
	// DataDir is the folder of an embedded store. It names the files of the
	// replica too: DataDir.log and DataDir.jwt-secret.
	DataDir string
	// Secret signs bearer tokens (HS256), at least 32 bytes.
	Secret string
	// Secure says that Args have it serve TLS.
	Secure bool
	// Args and Env (KEY=value) are added to the command line and environment.
	Args, Env []string
}

// Replica is one running API server. Apart from Token and URL its methods may
// not be called from two goroutines at once.
type Replica struct {
	running
	config  ReplicaConfig
	port    *port // the replica's own until Close
	address string
}

// StartReplica starts the server and returns when /readyz answers 200.
func StartReplica(ctx context.Context, config ReplicaConfig) (*Replica, error) {
	if err := os.WriteFile(secretFile(config), []byte(config.Secret), 0o600); err != nil {
		return nil, fmt.Errorf("start replica: %w", err)
	}
	p, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("start replica: %w", err)
	}
	r := &Replica{
		running: running{log: config.DataDir + ".log"}, config: config, port: p, address: p.address(),
	}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start replica: %w", err), r.Close())
	}
	return r, nil
}

func secretFile(config ReplicaConfig) string { return config.DataDir + ".jwt-secret" }

func (r *Replica) start(ctx context.Context) error {
	p, err := startProcess(r.config.Binary, r.log, r.args(), r.config.Env)
	if err != nil {
		return err
	}
	r.process = p
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.await(
		ctx, "/readyz", func(ctx context.Context) error { return expectOK(ctx, r.URL()+"/readyz") },
	)
}

func (r *Replica) args() []string {
	args := []string{"--listen", r.address, "--jwt-secret-file", secretFile(r.config)}
	if r.config.Store == "" || r.config.Store == "embedded" {
		args = append(args, "--store", "embedded", "--data-dir", r.config.DataDir)
	} else {
		args = append(args, "--store", r.config.Store)
	}
	return append(args, r.config.Args...)
}

// Address returns where the server listens, as host:port.
func (r *Replica) Address() string { return r.address }

// URL returns the server's base address, without a slash at the end.
func (r *Replica) URL() string {
	if r.config.Secure {
		return "https://" + r.address
	}
	return "http://" + r.address
}

// Exited is closed when the newest process has ended.
func (r *Replica) Exited() <-chan struct{} { return r.process.exited }

// Terminate sends SIGTERM and waits for the server to drain. It returns an
// error when the exit code is not zero, or when ctx ended first, after killing it.
func (r *Replica) Terminate(ctx context.Context) error { return r.process.terminate(ctx) }

// RestartAs is Restart with another binary, as at an upgrade.
func (r *Replica) RestartAs(ctx context.Context, binary string) error {
	r.config.Binary = binary
	return r.Restart(ctx)
}

// Restart starts the server again on the same port, after killing it if it
// runs, and returns when it is ready.
func (r *Replica) Restart(ctx context.Context) error {
	if err := r.Kill(); err != nil {
		return err
	}
	return r.start(ctx)
}

// Close kills the server and waits for it. Its data and log stay.
func (r *Replica) Close() error {
	return errors.Join(r.Kill(), r.port.release())
}

// Token returns a bearer token for tenant and subject, valid for a day, with a
// space-separated scope such as "locks:read locks:write".
func (r *Replica) Token(tenant, scope, subject string) (string, error) {
	return SignToken(r.config.Secret, tenant, scope, subject)
}

// SignToken signs a bearer token (HS256) that is valid for a day.
func SignToken(secret, tenant, scope, subject string) (string, error) {
	now := time.Now()
	claims := jwt.MapClaims{
		"sub": subject, "tenant": tenant, "scope": scope,
		"iat": now.Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).
		SignedString([]byte(strings.TrimRight(secret, "\n")))
}
