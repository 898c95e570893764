package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/test/bubble"
)

// lives is a table that keeps no records.
type lives struct {
	mu      sync.Mutex
	begun   int
	renewed []string // each time
	ended   []string
	fails   error // what renewals give
	slow    chan struct{}
}

func (l *lives) BeginLife(ctx context.Context) (string, error) {
	select {
	case <-l.slow:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
	return strconv.Itoa(l.begun), nil
}

func (l *lives) RenewLife(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = append(l.renewed, id)
	return l.fails
}

func (l *lives) EndLife(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, id)
	return errors.New("the store does not answer")
}

func (l *lives) failWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = err
}

func (l *lives) take() (renewed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	renewed, l.renewed = l.renewed, nil
	return renewed
}

func newLives() *lives {
	l := &lives{slow: make(chan struct{})}
	close(l.slow)
	return l
}

func wantLife(t *testing.T, l *engine.Life, want string) {
	t.Helper()
	if id, err := l.Begin(t.Context()); id != want || err != nil {
		t.Errorf("Begin = %q, %v, want %q", id, err, want)
	}
}

// TestLife: all bound records share one life, which is renewed in time until it is over,
// and ended by Close.
func TestLife(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := newLives()
		l := engine.NewLife(table)
		<-time.After(time.Minute)
		if table.begun != 0 {
			t.Error("a life began before the first bound record")
		}
		wantLife(t, l, "1")
		wantLife(t, l, "1")
		table.failWith(errors.New("no answer"))
		<-time.After(store.RecordLife)
		wantLife(t, l, "1")
		if renewed := table.take(); len(renewed) < 2 {
			t.Errorf("renewed %d times in a life", len(renewed))
		}
		table.failWith(engine.ErrLifeOver)
		<-time.After(store.RecordLife)
		table.failWith(nil)
		table.take()
		wantLife(t, l, "2")
		l.Over("1") // a caller finds out late
		wantLife(t, l, "2")
		<-time.After(store.RecordLife)
		if renewed := table.take(); len(renewed) < 2 || slices.Contains(renewed, "1") {
			t.Errorf("renewed: %v", renewed)
		}
		l.Close()
		if _, err := l.Begin(t.Context()); err == nil {
			t.Error("a life began after Close")
		}
		l.Close()
		if !slices.Equal(table.ended, []string{"2"}) {
			t.Errorf("ended: %v", table.ended)
		}
	})
}

// TestLifeThatIsOver: what is said of a life by a refused write counts at once.
func TestLifeThatIsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := newLives()
		l := engine.NewLife(table)
		wantLife(t, l, "1")
		l.Over("1")
		wantLife(t, l, "2")
		l.Over("2")
		l.Close()
		if len(table.ended) > 0 {
			t.Errorf("ended: %v", table.ended)
		}
	})
}

// TestLifeClosesSoon: Close does not wait for a store that does not answer.
func TestLifeClosesSoon(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := engine.NewLife(&lives{slow: make(chan struct{})})
		begun := make(chan error, 1)
		go func() {
			_, err := l.Begin(t.Context())
			begun <- err
		}()
		synctest.Wait()
		start := time.Now()
		l.Close()
		if took := time.Since(start); took > 0 || <-begun == nil {
			t.Errorf("closed after %v", took)
		}
	})
}
