package memory

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// Kinds of requests about small records.
const (
	LookAtRecord Operation = "look at record"
	SwapRecord   Operation = "swap record"
	ListRecords  Operation = "list records"
	RenewLife    Operation = "renew life"
	EndLife      Operation = "end life"
)

var _ store.RecordStore = (*RecordStore)(nil)

// RecordStore keeps small records for one [Client].
type RecordStore struct {
	client *Client
	life   *store.Life[int64]
}

// Records returns the client's small records.
func (c *Client) Records() *RecordStore { return c.small }

// Get implements [store.RecordStore].
func (r *RecordStore) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	return store.GetRecord(ctx, r, k)
}

// Put implements [store.RecordStore].
func (r *RecordStore) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	return store.PutRecord(ctx, r, p)
}

// Delete implements [store.RecordStore].
func (r *RecordStore) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	return store.DeleteRecord(ctx, r, k, version)
}

// List implements [store.RecordStore].
func (r *RecordStore) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if err := q.Check(); err != nil {
		return store.RecordPage{}, err
	}
	return ask(ctx, r.client, ListRecords, lock.ID(q.Kind), func() (store.RecordPage, uint64, error) {
		page, number := r.client.server.pageOfRecords(&q)
		return page, number, nil
	})
}

// Look implements [store.RecordTable].
func (r *RecordStore) Look(
	ctx context.Context,
	k store.RecordKey,
	_ bool,
) (store.RecordState, error) {
	return once(ctx, r.client, LookAtRecord, lock.ID(k.ID), func() (store.RecordState, uint64, error) {
		s, number := r.client.server.lookAtRecord(k)
		return s, number, nil
	})
}

// Swap implements [store.RecordTable].
func (r *RecordStore) Swap(
	ctx context.Context,
	s store.RecordState,
	w *store.RecordWrite,
) (uint64, error) {
	life, err := int64(0), error(nil)
	if w.Bound {
		if life, err = r.life.Begin(ctx); err != nil {
			return 0, errors.Join(batch.ErrNotSent, err)
		}
	}
	known := r.client.newest()
	version, err := once(ctx, r.client, SwapRecord, lock.ID(w.ID), func() (uint64, uint64, error) {
		return r.client.server.swapRecord(known, s, w, life)
	})
	switch {
	case errors.Is(err, store.ErrLifeOver):
		r.life.Over(life)
		err = errors.Join(batch.ErrNotSent, err)
	case errors.Is(err, ErrUnsent):
		err = errors.Join(batch.ErrNotSent, err)
	}
	return version, err
}

// lives are a client's lifetimes of bound records, by number.
type lives struct{ client *Client }

// BeginLife implements [store.LifeTable].
func (l *lives) BeginLife(ctx context.Context) (int64, error) {
	life := int64(l.client.attempt())
	return life, l.renew(ctx, life, true)
}

// RenewLife implements [store.LifeTable].
func (l *lives) RenewLife(
	ctx context.Context,
	life int64,
) error {
	return l.renew(ctx, life, false)
}

func (l *lives) renew(ctx context.Context, life int64, begin bool) error {
	_, err := once(ctx, l.client, RenewLife, "", func() (none, uint64, error) {
		number, err := l.client.server.renewLife(life, begin)
		return none{}, number, err
	})
	return err
}

// EndLife implements [store.LifeTable].
func (l *lives) EndLife(ctx context.Context, life int64) error {
	_, err := once(ctx, l.client, EndLife, "", func() (none, uint64, error) {
		return none{}, l.client.server.endLife(life), nil
	})
	return err
}

// Watch implements [store.RecordStore].
func (r *RecordStore) Watch(ctx context.Context, kind string, changed func()) {
	for ctx.Err() == nil {
		listening, stop := r.client.wire.Listen(ctx)
		for listening.Err() == nil {
			grown := r.client.server.kindGrows(kind)
			if r.client.wire.Tell(listening, Run{}) != nil {
				break
			}
			changed()
			select {
			case <-grown:
			case <-listening.Done():
			}
		}
		stop()
	}
}
