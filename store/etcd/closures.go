package etcd

import (
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// admission is the key of a tenant's closures, and the revision that it must have for an entry of
// the tenant to be put; 0 if it must be missing. The puts of one tenant share the comparison. It
// is part of every attempt, so an attempt that commits late is bound too.
type admission struct {
	key      string
	revision int64
}

func (s *Store) admission(e *lock.Entry) admission {
	a := admission{key: string(s.keyAt(engine.KeyOf(store.ClosuresKey(e.Tenant))))}
	if e.Admitted != 0 {
		a.revision = s.revision(e.Admitted)
	}
	return a
}
