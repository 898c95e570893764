package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
)

// lifeAttempt bounds one attempt to renew or end a life.
const lifeAttempt = 1500 * time.Millisecond

// ErrLifeOver means that a life has ended, with everything that was bound to it.
var ErrLifeOver = errors.New("what is bound to the replica has ended")

// Lives is a driver's part in lives: one attempt at each action.
type Lives interface {
	// BeginLife makes a new life, which lasts for [store.RecordLife].
	BeginLife(ctx context.Context) (id string, err error)
	// RenewLife restarts its RecordLife. [ErrLifeOver] means that it has ended; after any other
	// error it may still last.
	RenewLife(ctx context.Context, id string) error
	// EndLife ends it, with everything that is bound to it.
	EndLife(ctx context.Context, id string) error
}

// Life is the lifetime of one replica's bound records. It begins with the first of them and is
// renewed until it is closed or over; the next bound record then begins another one.
type Life struct {
	table   Lives
	closing context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu sync.Mutex
	id string // "" if there is none
}

// NewLife returns a life that has not begun. The caller closes it.
func NewLife(t Lives) *Life {
	l := &Life{table: t}
	l.closing, l.stop = context.WithCancel(context.Background())
	return l
}

// Begin returns the life for a new bound record. Others wait meanwhile.
func (l *Life) Begin(ctx context.Context) (id string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing.Err() != nil:
		return id, l.closing.Err()
	case l.id != "":
		return l.id, nil
	}
	begun, err := l.table.BeginLife(ctx)
	if err != nil {
		return id, err
	}
	l.id = begun
	l.tasks.Go(func() { l.renew(begun) })
	return begun, nil
}

func (l *Life) renew(id string) {
	for store.Pause(l.closing, store.RecordLife/3) == nil {
		ctx, cancel := context.WithTimeout(l.closing, lifeAttempt)
		err := l.table.RenewLife(ctx, id)
		cancel()
		if errors.Is(err, ErrLifeOver) {
			l.Over(id)
			return
		}
	}
}

// Over marks the life with the id as ended.
func (l *Life) Over(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = ""
	}
}

// Close ends the bound records if the store answers; otherwise they end by themselves.
func (l *Life) Close() {
	l.stop()
	l.mu.Lock()
	id := l.id
	l.id = ""
	l.mu.Unlock()
	l.tasks.Wait()
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifeAttempt)
	defer cancel()
	_ = l.table.EndLife(ctx, id)
}
