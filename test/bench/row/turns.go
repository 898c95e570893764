package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// drainTime bounds how long all that wait may take to have their turn.
const drainTime = 3 * time.Minute

// turns follow entries that wait for locks and are granted one after the other, as a stream
// of events tells it.
type turns struct {
	mu      sync.Mutex
	waiting map[string]side.Ticket // by id
	held    map[string]side.Ticket // by lock
	sent    map[string]time.Time   // by lock, its last release
	fences  map[string]int64       // by lock, the last one
	late    *load.Histogram        // up to the hurry
	granted int
	faults  []string
	hurry   bool        // whoever is granted releases at once
	release chan string // locks to be released
}

func newTurns() *turns {
	return &turns{
		waiting: map[string]side.Ticket{}, held: map[string]side.Ticket{}, sent: map[string]time.Time{}, fences: map[string]int64{},
		late: load.NewHistogram(), release: make(chan string, 2*asyncLocks),
	}
}

// hold takes what was granted at once, queue what waits.
func (t *turns) hold(k side.Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[k.Name] = k
}

func (t *turns) queue(k side.Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[k.ID] = k
}

// tell takes an event.
func (t *turns) tell(data []byte) {
	at := time.Now()
	var e struct {
		Type string
		Data struct {
			Lock  string
			Entry struct {
				ID    string
				Fence int64
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := json.Unmarshal(data, &e); err != nil || e.Type != "lock.acquired" {
		t.fault("%s %s of %s: %v", e.Type, e.Data.Entry.ID, e.Data.Lock, err)
		return
	}
	name, id := e.Data.Lock, e.Data.Entry.ID
	ticket, waits := t.waiting[id]
	_, held := t.held[name]
	if !waits || held || e.Data.Entry.Fence <= t.fences[name] {
		t.fault("%s was granted to %s, which waits: %t; held: %t; fence %d after %d", name, id, waits, held, e.Data.Entry.Fence, t.fences[name])
		return
	}
	delete(t.waiting, id)
	t.held[name], t.fences[name] = ticket, e.Data.Entry.Fence
	t.granted++
	if t.hurry {
		t.next(name)
		return
	}
	t.late.Record(at.Sub(t.sent[name]))
}

// fault notes something that must not be. The caller holds mu.
func (t *turns) fault(format string, args ...any) {
	const enough = 10
	if len(t.faults) < enough {
		t.faults = append(t.faults, fmt.Sprintf(format, args...))
	}
}

// next has a lock released. The caller holds mu.
func (t *turns) next(name string) {
	select {
	case t.release <- name:
	default:
		t.fault("nobody releases %s", name)
	}
}

// work has clients release what is to be released until stop is called.
func (t *turns) work(ctx context.Context, clients []*side.Client) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	errs := make(chan error, len(clients))
	for _, c := range clients {
		go func() {
			var err error
			for err == nil {
				select {
				case name := <-t.release:
					err = t.give(ctx, c, name)
				case <-ctx.Done():
					errs <- nil
					return
				}
			}
			errs <- err
		}()
	}
	return func() error {
		cancel()
		var all error
		for range clients {
			all = errors.Join(all, <-errs)
		}
		return all
	}
}

func (t *turns) give(ctx context.Context, c *side.Client, name string) error {
	t.mu.Lock()
	ticket, held := t.held[name]
	delete(t.held, name)
	t.sent[name] = time.Now()
	t.mu.Unlock()
	if !held {
		return nil
	}
	return c.Release(ctx, ticket)
}

// pace has locks released at a rate, one after the other, for as long as is said.
func (t *turns) pace(ctx context.Context, rate int, length time.Duration) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i, end := 0, time.Now().Add(length); time.Now().Before(end); i++ {
		t.mu.Lock()
		if _, held := t.held[asyncLock(i)]; held {
			t.next(asyncLock(i))
		}
		t.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// reset returns how late grants were, and begins to count that anew.
func (t *turns) reset() *load.Histogram {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late
	t.late = load.NewHistogram()
	return late
}

// sofar returns how many were granted, how late since the last reset, and what was wrong.
func (t *turns) sofar() (granted int, late *load.Histogram, faults []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	late = load.NewHistogram()
	late.Merge(t.late)
	return t.granted, late, t.faults
}

// drain has each release at once, and returns how many of all were not granted in time.
func (t *turns) drain(ctx context.Context, all int) (left int) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	t.mu.Lock()
	t.hurry = true
	for name := range t.held {
		t.next(name)
	}
	t.mu.Unlock()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		granted, _, _ := t.sofar()
		if granted == all {
			return 0
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return all - granted
		}
	}
}
