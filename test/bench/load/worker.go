package load

import "context"

// Worker is one client of a lock service. It has at most one lock at a time and
// is used by one goroutine.
type Worker interface {
	// Acquire takes the lock and returns the fence of the grant, 0 if the
	// service has none.
	Acquire(ctx context.Context, name string) (fence int64, err error)
	// Release gives back the lock that Acquire took.
	Release(ctx context.Context) error
}
