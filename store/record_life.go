package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lifeAttempt bounds one attempt to renew or end a life.
const lifeAttempt = 1500 * time.Millisecond

// ErrLifeOver means that a life has ended, with everything that was bound to it.
var ErrLifeOver = errors.New("what is bound to the replica has ended")

// LifeTable is an adapter's part in lives: one attempt at each action.
type LifeTable[ID comparable] interface {
	// BeginLife makes a new life, which lasts for [RecordLife].
	BeginLife(ctx context.Context) (ID, error)
	// RenewLife restarts its RecordLife. [ErrLifeOver] means that it has ended; after any other
	// error it may still last.
	RenewLife(ctx context.Context, id ID) error
	// EndLife ends it, with everything that is bound to it.
	EndLife(ctx context.Context, id ID) error
}

// Life is the lifetime of one replica's bound records. It begins with the first of them and is
// renewed until it is closed or over; the next bound record then begins another one.
type Life[ID comparable] struct {
	table   LifeTable[ID]
	closing context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu sync.Mutex
	id ID // zero if there is none
}

// NewLife returns a life that has not begun. The caller closes it.
func NewLife[ID comparable](t LifeTable[ID]) *Life[ID] {
	l := &Life[ID]{table: t}
	l.closing, l.stop = context.WithCancel(context.Background())
	return l
}

// Begin returns the life for a new bound record.
func (l *Life[ID]) Begin(ctx context.Context) (id ID, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing.Err() != nil:
		return id, l.closing.Err()
	case l.id != id:
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

func (l *Life[ID]) renew(id ID) {
	for Pause(l.closing, RecordLife/3) == nil {
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
func (l *Life[ID]) Over(id ID) {
	var none ID
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = none
	}
}

// Close ends the bound records if the store answers; otherwise they end by themselves.
func (l *Life[ID]) Close() {
	l.stop()
	var none ID
	l.mu.Lock()
	id := l.id
	l.id = none
	l.mu.Unlock()
	l.tasks.Wait()
	if id == none {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifeAttempt)
	defer cancel()
	_ = l.table.EndLife(ctx, id)
}
