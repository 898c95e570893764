package memory

import (
	"context"
	"errors"
	"sync"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// What requests about small records ask for.
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

	mu   sync.Mutex
	life int64 // what this client's bound records hang on; 0 none
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
func (r *RecordStore) Look(ctx context.Context, k store.RecordKey, _ bool) (store.RecordState, error) {
	return once(ctx, r.client, LookAtRecord, lock.ID(k.ID), func() (store.RecordState, uint64, error) {
		s, number := r.client.server.lookAtRecord(k)
		return s, number, nil
	})
}

// Swap implements [store.RecordTable].
func (r *RecordStore) Swap(ctx context.Context, s store.RecordState, w *store.RecordWrite) (uint64, error) {
	life, err := int64(0), error(nil)
	if w.Bound {
		if life, err = r.begin(ctx); err != nil {
			return 0, errors.Join(store.ErrNotSent, err)
		}
	}
	known := r.client.newest()
	version, err := once(ctx, r.client, SwapRecord, lock.ID(w.ID), func() (uint64, uint64, error) {
		return r.client.server.swapRecord(known, s, w, life)
	})
	switch {
	case errors.Is(err, errLifeOver):
		r.lost(life)
		err = errors.Join(store.ErrNotSent, err)
	case errors.Is(err, ErrUnsent):
		err = errors.Join(store.ErrNotSent, err)
	}
	return version, err
}

// begin returns the client's life, which is renewed from now on.
func (r *RecordStore) begin(ctx context.Context) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life != 0 {
		return r.life, nil
	}
	life := int64(r.client.attempt())
	if err := r.renew(ctx, life, true); err != nil {
		return 0, err
	}
	r.life = life
	r.client.inBackground(ctx, func(ctx context.Context) {
		for store.Pause(ctx, store.RecordLife/3) == nil {
			if errors.Is(r.renew(ctx, life, false), errLifeOver) {
				r.lost(life)
				return
			}
		}
	})
	return life, nil
}

func (r *RecordStore) renew(ctx context.Context, life int64, begin bool) error {
	_, err := once(ctx, r.client, RenewLife, "", func() (none, uint64, error) {
		number, err := r.client.server.renewLife(life, begin)
		return none{}, number, err
	})
	return err
}

func (r *RecordStore) lost(life int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == life {
		r.life = 0
	}
}

// close ends what is bound, if the server can be asked.
func (r *RecordStore) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life != 0 {
		_, _ = once(context.Background(), r.client, EndLife, "", func() (none, uint64, error) {
			return none{}, r.client.server.endLife(r.life), nil
		})
	}
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
