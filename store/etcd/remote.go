package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// RemoteConfig configures the connection to an etcd cluster.
type RemoteConfig struct {
	Endpoints []string // host:port
	TLS       *tls.Config
	Username  string
	Password  string
}

// Dial connects to an etcd cluster. It returns before any member answers; [Open] checks whether
// one does.
//
// The feed has its own connection, so that large reads cannot starve it (etcd #15402).
func Dial(cfg RemoteConfig) (*Conn, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("no etcd endpoint is given")
	}
	calls, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	feed, err := dial(cfg)
	if err != nil {
		return nil, errors.Join(err, calls.Close())
	}
	conn := newConn(clients{
		kv: clientv3.RetryKVClient(calls), leases: clientv3.RetryLeaseClient(calls),
		watcher: func() clientv3.Watcher { return clientv3.NewWatcher(feed) },
		close:   func() error { return errors.Join(feed.Close(), calls.Close()) },
	})
	conn.endpoints = cfg.Endpoints
	conn.version = func(ctx context.Context, endpoint string) (string, error) {
		status, err := calls.Status(ctx, endpoint)
		if err != nil {
			return "", err
		}
		return status.Version, nil
	}
	return conn, nil
}

func dial(cfg RemoteConfig) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, TLS: cfg.TLS, Username: cfg.Username, Password: cfg.Password,
		DialTimeout: attemptTimeout,
		// Silence reveals a member that is frozen or cut off. The server would reject pings more often
		// than every 5 s (too_many_pings), and pings without a stream.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return c, nil
}
