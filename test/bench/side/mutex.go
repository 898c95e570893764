package side

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/fencepost/fencepost/test/bench/load"
)

// ttlSeconds is the lease of every lock on every side.
const ttlSeconds = 30

// Sessions are the etcd sessions behind a set of mutex workers.
type Sessions struct{ open []*concurrency.Session }

// NewSessions opens n sessions. With one session for all workers a mutex costs
// no lease; on one contended lock each worker needs a session of its own, as
// the mutex tells its clients apart by it.
func NewSessions(client *clientv3.Client, n int) (*Sessions, error) {
	s := &Sessions{}
	for range n {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(ttlSeconds))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.open = append(s.open, session)
	}
	return s, nil
}

// Workers returns n clients that share the sessions evenly.
func (s *Sessions) Workers(n int) []load.Worker {
	workers := make([]load.Worker, n)
	for i := range workers {
		workers[i] = &mutexWorker{session: s.open[i%len(s.open)]}
	}
	return workers
}

// Close revokes the sessions' leases.
func (s *Sessions) Close() error {
	var errs []error
	for _, session := range s.open {
		errs = append(errs, session.Close())
	}
	return errors.Join(errs...)
}

type mutexWorker struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (w *mutexWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.mutex = concurrency.NewMutex(w.session, name)
	if err := w.mutex.Lock(ctx); err != nil {
		return 0, err
	}
	return w.mutex.Header().Revision, nil
}

func (w *mutexWorker) Release(ctx context.Context) error { return w.mutex.Unlock(ctx) }
