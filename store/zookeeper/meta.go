package zookeeper

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

// meta is what the store remembers about itself.
type meta struct {
	TokenKey []byte `json:"token_key"`          // 32 random bytes behind the lock tokens
	Floor    uint64 `json:"floor,omitempty"`    // added to every zxid
	Distrust uint64 `json:"distrust,omitempty"` // a number that the store must have reached, but has not

	version int32
}

// loadMeta reads meta, writes it on first use, and decides whether the store's
// numbers can be trusted.
//
// After a restore from a backup, or in an ensemble that was set up anew, zxids
// start over from an old one, and fences would be handed out a second time. A
// lock token that carries a number which the store has not reached gives it away
// ([Store.Distrust]). Nothing is granted then until an operator gives a floor.
func (s *Store) loadMeta(ctx context.Context, floor uint64) error {
	m, err := s.readMeta(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		m, err = s.makeMeta(ctx, floor)
	}
	if err != nil {
		return err
	}
	if floor != 0 && floor < m.Floor {
		return fmt.Errorf("the fence floor %d is below %d, which the store was given before", floor, m.Floor)
	}
	if floor > m.Floor {
		if m, err = s.raise(ctx, m, floor); err != nil {
			return err
		}
	}
	s.tokenKey = m.TokenKey
	s.judge(m)
	return nil
}

// makeMeta writes meta on first use. If the store has been used, somebody deleted
// it: without the floor that it had, fences could be handed out a second time.
func (s *Store) makeMeta(ctx context.Context, floor uint64) (*meta, error) {
	if s.used(ctx) {
		if m, err := s.readMeta(ctx); !errors.Is(err, zk.ErrNoNode) {
			return m, err // another replica made it just now, and then used the store
		}
		if floor == 0 {
			return nil, store.MetaGone(s.root.meta())
		}
		s.log.Error("the store's own records were deleted, which nobody but us should do; all lock tokens given out before are void", "path", s.root.meta())
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	if err := s.ensure(ctx, s.reads, s.root.meta(), store.Encode(meta{TokenKey: key, Floor: floor})); err != nil {
		return nil, err
	}
	return s.readMeta(ctx)
}

// used reports whether the log has had records.
func (s *Store) used(ctx context.Context) bool {
	n, err := onLink(ctx, s.reads, get(s.root.log(s.epoch.Load())))
	return err == nil && (n.stat.Cversion > 0 || s.epoch.Load() > 0)
}

// keepMeta puts meta back as this replica knows it, if somebody deleted or damaged
// it. Another token key is not taken over: the tokens that were given out here are
// bound to this one.
func (s *Store) keepMeta(ctx context.Context) error {
	m, err := s.readMeta(ctx)
	switch {
	case err == nil && !bytes.Equal(m.TokenKey, s.tokenKey):
		s.report(s.root.meta(), "the store has another key for lock tokens than this server, which so refuses the tokens of others, and they its own: start it anew")
		return nil
	case err == nil:
		s.known.Store(m)
		return nil
	case !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, errUnreadable):
		return err
	}
	s.log.Error("the store's own records were deleted or damaged, which nobody but us should do; they are put back", "path", s.root.meta(), "error", err)
	data := store.Encode(s.known.Load())
	if errors.Is(err, errUnreadable) {
		_, err = onLink(ctx, s.reads, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(s.root.meta(), data, -1) })
		return err
	}
	return s.ensure(ctx, s.reads, s.root.meta(), data)
}

// raise takes over the floor that the operator gave.
func (s *Store) raise(ctx context.Context, m *meta, floor uint64) (*meta, error) {
	stat, err := s.barrier(ctx, s.reads)
	if err != nil {
		return nil, err
	}
	if reached := uint64(stat.Mzxid) + floor; reached <= m.Distrust {
		return nil, fmt.Errorf("the fence floor %d is too low: fences would go on at %d, and %d was handed out before", floor, reached, m.Distrust)
	}
	m.Floor, m.Distrust = floor, 0
	if err := s.writeMeta(ctx, s.reads, m); err != nil {
		return nil, err
	}
	return s.readMeta(ctx)
}

func (s *Store) readMeta(ctx context.Context) (*meta, error) {
	return onLink(ctx, s.reads, s.getMeta)
}

func (s *Store) getMeta(c *zk.Conn) (*meta, error) {
	data, stat, err := c.Get(s.root.meta())
	if err != nil {
		return nil, err
	}
	m := &meta{version: stat.Version}
	if err := json.Unmarshal(data, m); err != nil || len(m.TokenKey) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.root.meta(), errUnreadable), err)
	}
	return m, nil
}

// errUnreadable counts as an answer of the server's.
var errUnreadable = fmt.Errorf("it cannot be read, and without it no lock token can be checked: a server that still runs puts it back within seconds; "+
	"if none does, restore it: %w", zk.ErrAPIError)

// refreshMeta reads on the feed's connection what another replica may have
// changed. What cannot be read leaves everything as it was.
func (s *Store) refreshMeta(ctx context.Context, l *link) error {
	if _, err := s.barrierOn(ctx, l); err != nil {
		return err
	}
	m, err := do(ctx, l, s.getMeta)
	if answered(err) {
		s.log.Error("the store's own records cannot be read", "error", err)
		return nil
	}
	if err == nil {
		s.judge(m)
	}
	return err
}

// judge decides from what is remembered whether anything may be granted.
func (s *Store) judge(m *meta) {
	s.known.Store(m)
	s.floor.Store(m.Floor)
	if m.Distrust == 0 {
		s.distrusted.Store(nil)
		return
	}
	why := distrustOf(m.Distrust) + "; nothing is granted until the server is started with --fence-floor set above every fence ever handed out"
	s.distrusted.Store(&why)
	s.log.Error("nothing is granted", "why", why)
}

func distrustOf(number uint64) string {
	return fmt.Sprintf("the store lost its past: fence %d was handed out, but the store has not reached it", number)
}

// writeMeta replaces meta and tells all followers of it.
func (s *Store) writeMeta(ctx context.Context, c *connector, m *meta) error {
	epoch := s.epoch.Load()
	_, err := onLink(ctx, c, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(
			&zk.CheckVersionRequest{Path: s.root.epoch(), Version: epoch},
			&zk.SetDataRequest{Path: s.root.meta(), Data: store.Encode(m), Version: m.version},
			&zk.CreateRequest{Path: s.root.log(epoch) + "/", Data: store.Encode(record{Meta: true}), Acl: s.acl, Flags: zk.FlagSequence},
			&zk.SetDataRequest{Path: s.root.log(epoch), Version: -1},
		)
	})
	return err
}

// Distrust implements store.Store. Other replicas learn of it by the log.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	why := distrustOf(number)
	s.distrusted.CompareAndSwap(nil, &why)
	for {
		m, err := s.readMeta(ctx)
		if err == nil && m.Distrust >= number {
			return nil
		}
		if err == nil {
			m.Distrust = number
			if err = s.writeMeta(ctx, s.calls, m); err == nil {
				return nil
			}
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(err, "record the distrust", true)
		}
	}
}
