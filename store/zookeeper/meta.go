package zookeeper

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

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

// metaKeeper keeps meta as it was read last, and decides by it whether the store's numbers
// can be trusted.
type metaKeeper struct {
	*journal
	tokenKey []byte
	known    atomic.Pointer[meta] // as it was read last
}

// load reads meta, writes it on first use, takes over the floor that the operator
// gave, and decides whether the store's numbers can be trusted: see [store.Trust].
// ZooKeeper has no identity that a restore would change.
func (k *metaKeeper) load(ctx context.Context, floor uint64) error {
	err := k.raise(ctx, floor)
	if err == nil {
		err = k.readAnew(ctx, k.reads, 0)
	}
	if err != nil {
		return err
	}
	k.tokenKey = k.known.Load().TokenKey
	return k.trust.Understands(k.known.Load().Form)
}

// make writes meta on first use. If the store has been used, somebody deleted
// it: without the floor that it had, fences could be handed out a second time.
func (k *metaKeeper) make(ctx context.Context, floor uint64) (*meta, error) {
	if k.used(ctx) {
		if m, err := k.read(ctx); !errors.Is(err, zk.ErrNoNode) {
			return m, err // another replica made it just now, and then used the store
		}
		if floor == 0 {
			return nil, store.MetaGone(k.root.meta())
		}
		k.log.Error("the store's own records were deleted, which nobody but us should do; all lock tokens given out before are void", "path", k.root.meta())
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	if err := k.ensure(ctx, k.reads, k.root.meta(), store.Encode(meta{TokenKey: key, Floor: floor})); err != nil {
		return nil, err
	}
	return k.read(ctx)
}

// used reports whether the log has had records.
func (k *metaKeeper) used(ctx context.Context) bool {
	n, err := onLink(ctx, k.reads, get(k.root.log(k.epoch.Load())))
	return err == nil && (n.stat.Cversion > 0 || k.epoch.Load() > 0)
}

// putBack puts meta back as this replica knows it, if somebody deleted or damaged
// it. Another token key is not taken over: the tokens that were given out here are
// bound to this one.
func (k *metaKeeper) putBack(ctx context.Context) error {
	m, err := k.read(ctx)
	switch {
	case err == nil && !bytes.Equal(m.TokenKey, k.tokenKey):
		k.report(k.root.meta(), "the store has another key for lock tokens than this server, which so refuses the tokens of others, and they its own: start it anew")
		return nil
	case err == nil:
		return nil
	case !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, errUnreadable):
		return err
	}
	k.log.Error("the store's own records were deleted or damaged, which nobody but us should do; they are put back", "path", k.root.meta(), "error", err)
	data := store.Encode(k.known.Load())
	if errors.Is(err, errUnreadable) {
		_, err = onLink(ctx, k.reads, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(k.root.meta(), data, -1) })
		return err
	}
	return k.ensure(ctx, k.reads, k.root.meta(), data)
}

// raise writes the floor that the operator gave, unless it is there. It only ever
// rises: the write is refused if another replica was faster.
func (k *metaKeeper) raise(ctx context.Context, floor uint64) error {
	m, err := k.read(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		m, err = k.make(ctx, floor)
	}
	if err == nil {
		err = k.trust.Understands(m.Form)
	}
	if err != nil || floor == 0 {
		return err
	}
	l, err := k.reads.get(ctx)
	if err != nil {
		return err
	}
	stat, err := k.setLog(ctx, l)
	if err != nil {
		return err
	}
	was := m.records(stat.Mzxid)
	raises, err := was.Raises(floor)
	if err != nil || !raises {
		return err
	}
	m.Floor, m.Distrust = floor, 0
	err = k.write(ctx, k.reads, m, record{Meta: true})
	if err == nil {
		was.TellLow(k.log, floor, epochJump)
	}
	return err
}

// epochJump is by how much an election brings zxids forward, as that does with which servers start.
const epochJump = 1 << 32

func (k *metaKeeper) read(ctx context.Context) (*meta, error) {
	return onLink(ctx, k.reads, k.get)
}

func (k *metaKeeper) get(c *zk.Conn) (*meta, error) {
	data, stat, err := c.Get(k.root.meta())
	if err != nil {
		return nil, err
	}
	m := &meta{version: stat.Version}
	if err := json.Unmarshal(data, m); err != nil || len(m.TokenKey) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w", k.root.meta(), errUnreadable), err)
	}
	return m, nil
}

// errUnreadable counts as an answer of the server's.
var errUnreadable = fmt.Errorf("it cannot be read, and without it no lock token can be checked: a server that still runs puts it back within seconds; "+
	"if none does, restore it: %w", zk.ErrAPIError)

// readAnew reads meta and takes it over. It records a lost past that it shows, and a
// floor that somebody lowered. told is a number that was handed out, or 0.
func (k *metaKeeper) readAnew(ctx context.Context, c *connector, told uint64) error {
	for {
		correction, err := k.trust.Anew(ctx, told, func(ctx context.Context) (store.Records, error) { return k.ask(ctx, c) })
		if err == nil {
			err = k.settle(ctx, c, correction)
		}
		if !errors.Is(err, errRaced) || store.Pause(ctx, firstPause) != nil {
			return err
		}
	}
}

// errRaced says that meta has changed since it was read.
var errRaced = errors.New("meta has changed")

// ask returns meta as it stood at one transaction, which is no older than the
// call: that meta was still the same is checked by the transaction itself. It is to be kept.
func (k *metaKeeper) ask(ctx context.Context, c *connector) (store.Records, error) {
	l, err := c.get(ctx)
	if err != nil {
		return store.Records{}, err
	}
	if _, err := k.setLog(ctx, l); err != nil {
		return store.Records{}, err
	}
	m, err := do(ctx, l, k.get)
	if k.known.Load() != nil && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, errUnreadable)) {
		return store.Records{}, errors.Join(errRaced, k.putBack(ctx))
	}
	if err != nil {
		return store.Records{}, err
	}
	stat, err := k.setLog(ctx, l, &zk.CheckVersionRequest{Path: k.root.meta(), Version: m.version})
	if err != nil {
		return store.Records{}, err
	}
	r := m.records(stat.Mzxid)
	r.Keep = func() { k.known.Store(m) }
	return r, nil
}

// settle does what a correction asks for, and then has meta read again.
func (k *metaKeeper) settle(ctx context.Context, c *connector, v store.Correction) error {
	k.trust.TellRefusal(k.log)
	m, told := *k.known.Load(), record{Meta: true}
	switch {
	case v.Form != 0:
		m.Form, told.Form = v.Form, v.Form
	case v.Lost != 0:
		m.Distrust = v.Lost
	case v.Lowered:
		k.log.Error("the fence floor was lowered, which nobody should do; it is put back", "floor", k.trust.Floor())
		m.Floor = k.trust.Floor()
	default:
		return nil
	}
	if err := k.write(ctx, c, &m, told); err != nil {
		return err
	}
	return errRaced
}

// require returns when meta says that who uses the store has to understand the form,
// so that none who does not reads what is written then.
func (s *Store) require(ctx context.Context, form int) error {
	if form <= 1 || s.meta.known.Load().Form >= form {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.trust.Need(form)
	for {
		err := s.meta.readAnew(ctx, s.calls, 0)
		if err == nil {
			return nil
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(err, "record the form of what is stored", false)
		}
	}
}

// look reads anew what has become doubtful.
func (s *Store) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.meta.readAnew(ctx, s.calls, 0)
}

// refresh reads on the feed's connection what another replica may have
// changed. What cannot be read leaves everything as it was.
func (k *metaKeeper) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	err := k.readAnew(ctx, k.reads, 0)
	if answered(err) && !errors.Is(err, zk.ErrBadVersion) {
		k.log.Error("the store's own records cannot be read", "error", err)
		return nil
	}
	return err
}

// write replaces meta and tells all followers of it by a record.
func (k *metaKeeper) write(ctx context.Context, c *connector, m *meta, told record) error {
	epoch := k.epoch.Load()
	_, err := onLink(ctx, c, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(
			&zk.CheckVersionRequest{Path: k.root.epoch(), Version: epoch},
			&zk.SetDataRequest{Path: k.root.meta(), Data: store.Encode(m), Version: m.version},
			&zk.CreateRequest{Path: k.root.log(epoch) + "/", Data: store.Encode(told), Acl: k.acl, Flags: zk.FlagSequence},
			&zk.SetDataRequest{Path: k.root.log(epoch), Version: -1},
		)
	})
	return err
}

// barrierAsKnown is a barrier at which meta is as this replica knows it. One that it may
// not look at stays as it was known.
func (k *metaKeeper) barrierAsKnown(ctx context.Context, l *link) (*zk.Stat, error) {
	mark := k.trust.Sent()
	stat, err := k.setLog(ctx, l, &zk.CheckVersionRequest{Path: k.root.meta(), Version: k.known.Load().version})
	switch {
	case err == nil:
		k.trust.Received(mark, stat.Mzxid, 0)
	case errors.Is(err, zk.ErrNoAuth):
		return k.barrierOn(ctx, l)
	}
	return stat, err
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
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		err := s.meta.readAnew(ctx, s.calls, number)
		if err == nil {
			return nil
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(err, "record the distrust", true)
		}
	}
}
