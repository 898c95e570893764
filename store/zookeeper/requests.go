package zookeeper

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"
)

// node is a node's data and stat.
type node struct {
	data []byte
	stat *zk.Stat
}

// The following functions are requests for [do] and [onLink].

func get(path string) func(*zk.Conn) (node, error) {
	return func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		return node{data, stat}, err
	}
}

func create(path string, data []byte, flags int32, acl []zk.ACL) func(*zk.Conn) (string, error) {
	return func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, acl) }
}

// touch sets a node without data, which raises its version.
func touch(path string) func(*zk.Conn) (*zk.Stat, error) {
	return func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, nil, anyVersion) }
}

func remove(path string, version int32) func(*zk.Conn) (struct{}, error) {
	return func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, version) }
}

func multi(ops ...any) func(*zk.Conn) ([]zk.MultiResponse, error) {
	return func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) }
}

// children returns the names of a node's children.
func children(ctx context.Context, l *link, path string) ([]string, error) {
	return do(ctx, l, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
}

// inParallel runs n tasks, a bounded number at a time, and returns one of their errors.
func inParallel(n int, work func(i int) error) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || next == n {
			return -1
		}
		next++
		return next - 1
	}
	for range min(n, bulk) {
		all.Go(func() {
			for i := take(); i >= 0; i = take() {
				if err := work(i); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return failed
}
