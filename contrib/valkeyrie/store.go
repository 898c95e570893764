// Package valkeyrie lets programs that lock by github.com/kvtools/valkeyrie lock by Fencepost. It
// keeps no other keys: the operations on those return [store.ErrCallNotSupported].
package valkeyrie

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/kvtools/valkeyrie"
	"github.com/kvtools/valkeyrie/store"

	"github.com/fencepost/fencepost/client"
)

// Store has locks. A lock has a value while it is held.
type Store struct {
	noKeys
	client *client.Client
}

var (
	_ store.Store           = (*Store)(nil)
	_ valkeyrie.Constructor = Open
)

// Open returns a store; the configuration is a [client.Config], whose URLs are the endpoints.
func Open(
	_ context.Context, endpoints []string, configuration valkeyrie.Config,
) (store.Store, error) {
	config, ok := configuration.(client.Config)
	if !ok {
		return nil, &store.InvalidConfigurationError{Store: "fencepost", Config: configuration}
	}
	config.URLs = endpoints
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	return &Store{client: c}, nil
}

// Close ends all renewals. The locks expire with their TTL.
func (s *Store) Close() error { return s.client.Close() }

// NewLock returns a [Lock] that is not held.
func (s *Store) NewLock(
	_ context.Context, key string, options *store.LockOptions,
) (store.Locker, error) {
	lock := &Lock{client: s.client, name: nameOf(key), options: client.Options{Wait: longest}}
	if options != nil {
		lock.options.TTL, lock.stop = options.TTL, options.RenewLock
		if options.Value != nil {
			lock.options.Metadata = map[string]string{
				value: base64.StdEncoding.EncodeToString(options.Value),
			}
		}
	}
	return lock, nil
}

// value is the key of the metadata that have the value of a lock.
const value = "value"

// Get returns the value of a lock that is held, and its fence.
func (s *Store) Get(
	ctx context.Context, key string, _ *store.ReadOptions,
) (*store.KVPair, error) {
	lock, err := s.client.Look(ctx, nameOf(key))
	if err != nil {
		return nil, err
	}
	if len(lock.Holders) == 0 {
		return nil, store.ErrKeyNotFound
	}
	text, err := base64.StdEncoding.DecodeString(lock.Holders[0].Metadata[value])
	if err != nil {
		return nil, err
	}
	return &store.KVPair{Key: key, Value: text, LastIndex: lock.Holders[0].Fence}, nil
}

// nameOf returns the name of a lock, which has no slashes.
func nameOf(key string) string { return strings.ReplaceAll(strings.Trim(key, "/"), "/", ":") }

// noKeys are the operations on keys that are no locks.
type noKeys struct{}

func (noKeys) Put(context.Context, string, []byte, *store.WriteOptions) error {
	return store.ErrCallNotSupported
}

func (noKeys) Delete(context.Context, string) error { return store.ErrCallNotSupported }

func (noKeys) Exists(context.Context, string, *store.ReadOptions) (bool, error) {
	return false, store.ErrCallNotSupported
}

func (noKeys) Watch(context.Context, string, *store.ReadOptions) (<-chan *store.KVPair, error) {
	return nil, store.ErrCallNotSupported
}

func (noKeys) WatchTree(
	context.Context, string, *store.ReadOptions,
) (<-chan []*store.KVPair, error) {
	return nil, store.ErrCallNotSupported
}

func (noKeys) List(context.Context, string, *store.ReadOptions) ([]*store.KVPair, error) {
	return nil, store.ErrCallNotSupported
}

func (noKeys) DeleteTree(context.Context, string) error { return store.ErrCallNotSupported }

func (noKeys) AtomicPut(
	context.Context, string, []byte, *store.KVPair, *store.WriteOptions,
) (bool, *store.KVPair, error) {
	return false, nil, store.ErrCallNotSupported
}

func (noKeys) AtomicDelete(context.Context, string, *store.KVPair) (bool, error) {
	return false, store.ErrCallNotSupported
}
