// Package gocron lets the schedulers of github.com/go-co-op/gocron/v2 on several machines run each
// job once, by locks of Fencepost.
package gocron

import (
	"context"
	"regexp"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencepost/fencepost/client"
)

// Locker holds a lock while a job runs.
type Locker struct {
	client  *client.Client
	prefix  string
	options client.Options

	held sync.Map // the *client.Held of each job that runs, by the name of the job
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker, for one scheduler. The lock of a job has the name of the job after
// the prefix. Set Options.AtLeast to more than the clocks of the schedulers differ: a scheduler
// that is late then finds the lock held, although the job has ended. Options.Wait has no effect.
func NewLocker(c *client.Client, prefix string, options client.Options) *Locker {
	return &Locker{client: c, prefix: prefix, options: options}
}

// notOfNames are the characters that names of locks do not have.
var notOfNames = regexp.MustCompile(`[^A-Za-z0-9._:@=+-]`)

// Lock acquires the lock of a job if it is free now. Otherwise gocron skips this run.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	name := l.prefix + notOfNames.ReplaceAllString(job, "_")
	held, err := l.client.TryLock(ctx, name, l.options)
	if err != nil {
		return nil, err
	}
	l.held.Store(job, held)
	return &run{locker: l, job: job, held: held}, nil
}

// Held returns the lock of a job that runs here, or nil. gocron cannot hand it to the job. Its
// context ends when the lock is lost, and when gocron ends the job's.
func (l *Locker) Held(job string) *client.Held {
	held, _ := l.held.Load(job)
	of, _ := held.(*client.Held)
	return of
}

// run is the lock of one run.
type run struct {
	locker *Locker
	job    string
	held   *client.Held
}

// Unlock releases the lock, also if ctx has ended, as that of a removed job has.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.held.CompareAndDelete(r.job, r.held)
	return r.held.Release(context.WithoutCancel(ctx))
}
