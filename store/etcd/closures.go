package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// admission is the key of a tenant's closures, and the revision that it must have for an entry of
// the tenant to be put; 0 if it must be missing. The puts of one tenant share the comparison. It
// is part of every attempt, so an attempt that commits late is bound too.
type admission struct {
	key      string
	revision int64
}

func (s *Store) admission(e *lock.Entry) admission {
	a := admission{key: string(s.records.key(store.ClosuresKey(e.Tenant)))}
	if e.Admitted != 0 {
		a.revision = s.revision(e.Admitted)
	}
	return a
}

// shut returns [store.ErrClosuresChanged] if the closures are not those that admit the entry.
func (j *joining) shut(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	a := j.store.admission(j.entry)
	resp, err := j.store.read(ctx, "read the closures", &pb.RangeRequest{
		Key: []byte(a.key), KeysOnly: true,
	})
	if err != nil {
		return err
	}
	now := int64(0)
	if len(resp.Kvs) > 0 {
		now = resp.Kvs[0].ModRevision
	}
	if now != a.revision {
		return store.ErrClosuresChanged
	}
	return nil
}
