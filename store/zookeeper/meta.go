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
	Form     int    `json:"form,omitempty"`     // the lowest that must be understood, see [store.Form]; 0 is 1

	version int32
}

// records returns what meta says beside the zxid at which it stood there.
func (m *meta) records(zxid int64) store.Records {
	return store.Records{Position: uint64(zxid), Floor: m.Floor, Distrust: m.Distrust, Form: m.Form}
}

// loadMeta reads meta, writes it on first use, takes over the floor that the operator
// gave, and decides whether the store's numbers can be trusted: see [store.Trust].
// ZooKeeper has no identity that a restore would change.
func (s *Store) loadMeta(ctx context.Context, floor uint64) error {
	err := s.raise(ctx, floor)
	if err == nil {
		err = s.readAnew(ctx, s.reads, 0)
	}
	if err != nil {
		return err
	}
	s.tokenKey = s.known.Load().TokenKey
	return s.trust.Understands(s.known.Load().Form)
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

// raise writes the floor that the operator gave, unless it is there. It only ever
// rises: the write is refused if another replica was faster.
func (s *Store) raise(ctx context.Context, floor uint64) error {
	m, err := s.readMeta(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		m, err = s.makeMeta(ctx, floor)
	}
	if err == nil {
		err = s.trust.Understands(m.Form)
	}
	if err != nil || floor == 0 {
		return err
	}
	l, err := s.reads.get(ctx)
	if err != nil {
		return err
	}
	stat, err := s.setLog(ctx, l)
	if err != nil {
		return err
	}
	raises, err := m.records(stat.Mzxid).Raises(floor)
	if err != nil || !raises {
		return err
	}
	m.Floor, m.Distrust = floor, 0
	return s.writeMeta(ctx, s.reads, m)
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

// readAnew reads meta and takes it over. It records a lost past that it shows, and a
// floor that somebody lowered. told is a number that was handed out, or 0.
func (s *Store) readAnew(ctx context.Context, c *connector, told uint64) error {
	for {
		verdict, err := s.trust.Anew(ctx, told, func(ctx context.Context) (store.Records, error) { return s.askMeta(ctx, c) })
		if err == nil {
			err = s.settle(ctx, c, verdict)
		}
		if !errors.Is(err, errRaced) || store.Pause(ctx, firstPause) != nil {
			return err
		}
	}
}

// errRaced says that meta has changed since it was read.
var errRaced = errors.New("meta has changed")

// askMeta returns meta as it stood at one transaction, which is no older than the
// call: that meta was still the same is checked by the transaction itself. It is to be kept.
func (s *Store) askMeta(ctx context.Context, c *connector) (store.Records, error) {
	l, err := c.get(ctx)
	if err != nil {
		return store.Records{}, err
	}
	if _, err := s.setLog(ctx, l); err != nil {
		return store.Records{}, err
	}
	m, err := do(ctx, l, s.getMeta)
	if s.known.Load() != nil && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, errUnreadable)) {
		return store.Records{}, errors.Join(errRaced, s.keepMeta(ctx))
	}
	if err != nil {
		return store.Records{}, err
	}
	stat, err := s.setLog(ctx, l, &zk.CheckVersionRequest{Path: s.root.meta(), Version: m.version})
	if err != nil {
		return store.Records{}, err
	}
	r := m.records(stat.Mzxid)
	r.Keep = func() { s.known.Store(m) }
	return r, nil
}

// settle does what a verdict asks for, and then has meta read again.
func (s *Store) settle(ctx context.Context, c *connector, v store.Verdict) error {
	s.tellRefusal()
	m := *s.known.Load()
	switch {
	case v.Form != 0:
		m.Form = v.Form
	case v.Lost != 0:
		m.Distrust = v.Lost
	case v.Lowered:
		s.log.Error("the fence floor was lowered, which nobody should do; it is put back", "floor", s.trust.Floor())
		m.Floor = s.trust.Floor()
	default:
		return nil
	}
	if err := s.writeMeta(ctx, c, &m); err != nil {
		return err
	}
	return errRaced
}

// require returns when meta says that who uses the store has to understand the form,
// so that none who does not reads what is written then.
func (s *Store) require(ctx context.Context, form int) error {
	if form <= 1 || s.known.Load().Form >= form {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	s.trust.Need(form)
	for {
		err := s.readAnew(ctx, s.calls, 0)
		if err == nil {
			return nil
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(err, "record the form of what is stored", false)
		}
	}
}

// tellRefusal logs why nothing is granted, once.
func (s *Store) tellRefusal() {
	why := ""
	if r := s.trust.Refusal(); r != nil {
		why = r.Detail
	}
	if was := s.told.Swap(&why); why != "" && (was == nil || *was != why) {
		s.log.Error("nothing is granted", "why", why)
	}
}

// look reads anew what has become doubtful.
func (s *Store) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return s.readAnew(ctx, s.calls, 0)
}

// refreshMeta reads on the feed's connection what another replica may have
// changed. What cannot be read leaves everything as it was.
func (s *Store) refreshMeta(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	err := s.readAnew(ctx, s.reads, 0)
	if answered(err) && !errors.Is(err, zk.ErrBadVersion) {
		s.log.Error("the store's own records cannot be read", "error", err)
		return nil
	}
	return err
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

// Refusal implements store.Store.
func (s *Store) Refusal() error {
	if refusal := s.trust.Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// Distrust implements store.Store. Other replicas learn of it by the log, or by their
// next write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	for {
		err := s.readAnew(ctx, s.calls, number)
		if err == nil {
			return nil
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(err, "record the distrust", true)
		}
	}
}
