package memory

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// Kinds of requests about values. They have the last part of a key's name.
const (
	Look      Operation = "look"
	Commit    Operation = "commit"
	ListDir   Operation = "list values"
	RenewLife Operation = "renew life"
	EndLife   Operation = "end life"
)

// Records returns the client's small records.
func (c *Client) Records() *engine.Records { return c.small }

// driver is the engine's way to the server.
type driver struct{ client *Client }

var _ engine.Driver = driver{}

func newRecords(c *Client) *engine.Records {
	return engine.NewRecords(driver{c}, own{}, slog.New(slog.DiscardHandler))
}

// Look implements [engine.Driver].
func (d driver) Look(ctx context.Context, k engine.Key, _ bool) (engine.State, error) {
	return once(ctx, d.client, Look, idOf(k), func() (engine.State, uint64, error) {
		s, number := d.client.server.look(k)
		return s, number, nil
	})
}

func idOf(k engine.Key) lock.ID { return lock.ID(k.Name[strings.LastIndexByte(k.Name, '/')+1:]) }

// Commit implements [engine.Driver].
func (d driver) Commit(ctx context.Context, t engine.Txn) (int64, error) {
	known := d.client.newest()
	return d.write(ctx, Commit, idOf(t.Put[0].Key), func() (uint64, error) {
		return d.client.server.write(known, t)
	})
}

// write sends a write once, and returns its number.
func (d driver) write(
	ctx context.Context, op Operation, id lock.ID, do func() (uint64, error),
) (int64, error) {
	at, err := once(ctx, d.client, op, id, func() (int64, uint64, error) {
		number, err := do()
		return int64(number), number, err
	})
	if errors.Is(err, ErrUnsent) {
		err = errors.Join(batch.ErrNotSent, err)
	}
	return at, err
}

// List implements [engine.Driver].
func (d driver) List(ctx context.Context, l engine.Listing) (string, error) {
	kind := lock.ID(l.Dir[strings.LastIndexByte(l.Dir, '/')+1:])
	type item struct {
		name  string
		state engine.State
	}
	type part struct {
		items []item
		next  string
	}
	got, err := ask(ctx, d.client, ListDir, kind, func() (p part, number uint64, err error) {
		copied := l
		copied.Take = func(name string, s engine.State) bool {
			if len(p.items) == l.Limit {
				return false
			}
			p.items = append(p.items, item{name, s})
			return true
		}
		p.next, number = d.client.server.listValues(copied)
		return p, number, nil
	})
	if err != nil {
		return "", err
	}
	last := l.Cursor
	for _, i := range got.items {
		if !l.Take(i.name, i.state) {
			return last, nil
		}
		last = i.name
	}
	return got.next, nil
}

// Follow implements [engine.Driver].
func (d driver) Follow(ctx context.Context, dir string, changed func()) error {
	listening, stop := d.client.wire.Listen(ctx)
	defer stop()
	for listening.Err() == nil {
		grown := d.client.server.dirGrows(dir)
		if err := d.client.wire.Tell(listening, Run{}); err != nil {
			return err
		}
		changed()
		select {
		case <-grown:
		case <-listening.Done():
		}
	}
	return context.Cause(listening)
}

// BeginLife implements [engine.Lives].
func (d driver) BeginLife(ctx context.Context) (string, error) {
	id := strconv.FormatInt(int64(d.client.attempt()), 16)
	return id, d.renew(ctx, id, true)
}

// RenewLife implements [engine.Lives].
func (d driver) RenewLife(ctx context.Context, id string) error { return d.renew(ctx, id, false) }

func (d driver) renew(ctx context.Context, id string, begin bool) error {
	_, err := once(ctx, d.client, RenewLife, "", func() (none, uint64, error) {
		number, err := d.client.server.renewLife(id, begin)
		return none{}, number, err
	})
	return err
}

// EndLife implements [engine.Lives].
func (d driver) EndLife(ctx context.Context, id string) error {
	_, err := once(ctx, d.client, EndLife, "", func() (none, uint64, error) {
		return none{}, d.client.server.endLife(id), nil
	})
	return err
}

// own says that the server itself checks what each write depends on, and counts the fence floor
// into its numbers.
type own struct{}

func (own) Refusal() *lock.Error         { return nil }
func (own) Unchanged() []engine.If       { return nil }
func (own) Reread(context.Context) error { return nil }
func (own) Number(position int64) uint64 { return uint64(position) }

// RemoveAndPut implements [store.Store].
func (c *Client) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	return c.small.PutWith(ctx, p, func(ctx context.Context, t engine.Txn) (int64, error) {
		known := c.newest()
		return driver{c}.write(ctx, Revoke, e.ID, func() (uint64, error) {
			return c.server.removeAndCommit(e, why, note, known, t)
		})
	})
}
