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

// meta is the store's own record.
type meta struct {
	TokenKey []byte `json:"token_key"`          // 32 random bytes that sign the lock tokens
	Floor    uint64 `json:"floor,omitempty"`    // added to every zxid
	Distrust uint64 `json:"distrust,omitempty"` // an issued number that was not reached
	Form     int    `json:"form"`               // see [store.Form]

	version int32
}

// records combines meta with the zxid at which it was read.
func (m *meta) records(zxid int64) store.Records {
	return store.Records{Position: uint64(zxid), Floor: m.Floor, Distrust: m.Distrust, Form: m.Form}
}

// metaKeeper keeps meta as last read, and decides by it whether the store's numbers can be
// trusted.
type metaKeeper struct {
	*journal
	tokenKey []byte
	known    atomic.Pointer[meta] // as last read
}

// load reads meta, writes it on first use, applies the operator's floor, and decides whether the
// store's numbers can be trusted: see [store.Trust]. ZooKeeper has no cluster id that a restore
// would change.
func (k *metaKeeper) load(ctx context.Context, floor uint64) error {
	err := k.raise(ctx, floor)
	if err == nil {
		err = k.rereadRecords(ctx, k.reads, 0)
	}
	if err != nil {
		return err
	}
	k.tokenKey = k.known.Load().TokenKey
	return store.CheckForm(k.known.Load().Form)
}

// make writes meta on first use. If the store has been used, meta was deleted or damaged by hand.
// Then make needs a floor from the operator, because the old one is unknown.
func (k *metaKeeper) make(ctx context.Context, floor uint64, why error) (*meta, error) {
	m := meta{TokenKey: make([]byte, 32), Floor: floor, Form: store.Form}
	_, _ = rand.Read(m.TokenKey) // never fails: crypto/rand ends the program instead
	if k.used(ctx) || errors.Is(why, errUnreadable) {
		if m, err := k.read(ctx); !damaged(err) {
			return m, err // another replica just made it, and then used the store
		}
		if floor == 0 {
			return nil, store.RecordsDamaged(k.root.meta())
		}
		k.log.Error("the store's own record is made again; all lock tokens from before are void",
			"path", k.root.meta())
		_, err := onLink(ctx, k.reads, remove(k.root.meta(), anyVersion))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
	}
	if err := k.ensure(ctx, k.reads, k.root.meta(), store.Encode(m)); err != nil {
		return nil, err
	}
	return k.read(ctx)
}

// damaged reports whether err means that meta was deleted or changed by hand.
func damaged(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, errUnreadable) || errors.Is(err, errOtherKey)
}

// used reports whether the log has had records.
func (k *metaKeeper) used(ctx context.Context) bool {
	n, err := onLink(ctx, k.reads, get(k.root.log(k.epoch.Load())))
	return err == nil && (n.stat.Cversion > 0 || k.epoch.Load() > 0)
}

// raise writes the operator's floor, unless it is there. The floor only rises: the write fails if
// another replica was faster.
func (k *metaKeeper) raise(ctx context.Context, floor uint64) error {
	m, err := k.read(ctx)
	if damaged(err) {
		m, err = k.make(ctx, floor, err)
	}
	if err == nil {
		err = store.CheckForm(m.Form)
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
	err = k.write(ctx, k.reads, m)
	if err == nil {
		was.TellLow(k.log, floor, epochJump)
	}
	return err
}

// epochJump is how far an election, and so a start of the servers, raises zxids.
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

// Both count as answers of the server.
var (
	errUnreadable = fmt.Errorf("it cannot be read: %w", zk.ErrAPIError)
	errOtherKey   = fmt.Errorf("it has another key for lock tokens: %w", zk.ErrAPIError)
)

// rereadRecords reads meta again and applies it. It records a lost past that it proves.
// handedOut is an issued number, or 0.
func (k *metaKeeper) rereadRecords(ctx context.Context, c *connector, handedOut uint64) error {
	ask := func(ctx context.Context) (store.Records, error) { return k.ask(ctx, c) }
	for {
		lost, err := k.trust.Reread(ctx, handedOut, ask)
		k.trust.TellRefusal(k.log)
		if err == nil {
			err = k.settle(ctx, c, lost)
		}
		if !errors.Is(err, errRaced) || store.Pause(ctx, firstPause) != nil {
			return err
		}
	}
}

// errRaced means that meta has changed since it was read.
var errRaced = errors.New("meta has changed")

// ask returns meta as of one transaction, which is no older than the call: the transaction checks
// that meta is what was read. The trust keeps it.
func (k *metaKeeper) ask(ctx context.Context, c *connector) (store.Records, error) {
	l, err := c.get(ctx)
	if err != nil {
		return store.Records{}, err
	}
	if _, err := k.setLog(ctx, l); err != nil {
		return store.Records{}, err
	}
	m, err := do(ctx, l, k.get)
	if err == nil && k.tokenKey != nil && !bytes.Equal(m.TokenKey, k.tokenKey) {
		err = errOtherKey
	}
	if damaged(err) {
		err = fmt.Errorf("%w (%w)", store.RecordsDamaged(k.root.meta()), err)
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

// settle records a lost past, unless lost is 0, and then has meta read again.
func (k *metaKeeper) settle(ctx context.Context, c *connector, lost uint64) error {
	if lost == 0 {
		return nil
	}
	m := *k.known.Load()
	m.Distrust = lost
	if err := k.write(ctx, c, &m); err != nil {
		return err
	}
	return errRaced
}

// reread reads meta until that succeeds. handedOut is an issued number, or 0.
func (s *Store) reread(ctx context.Context, handedOut uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		err := s.meta.rereadRecords(ctx, s.calls, handedOut)
		if err == nil || store.Pause(ctx, firstPause) != nil {
			return err
		}
	}
}

// refresh reads on the feed's connection what another replica may have changed. After a failed
// read everything stays as it was.
func (k *metaKeeper) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	err := k.rereadRecords(ctx, k.reads, 0)
	if answered(err) && !errors.Is(err, zk.ErrBadVersion) {
		k.log.Error("the store's own records cannot be read", "error", err)
		return nil
	}
	return err
}

// check is the operation that fails unless meta is as this replica knows it.
func (k *metaKeeper) check() any {
	return &zk.CheckVersionRequest{Path: k.root.meta(), Version: k.known.Load().version}
}

// write replaces meta and reports it to all followers by a record.
func (k *metaKeeper) write(ctx context.Context, c *connector, m *meta) error {
	epoch := k.epoch.Load()
	_, err := onLink(ctx, c, multi(
		&zk.CheckVersionRequest{Path: k.root.epoch(), Version: epoch},
		&zk.SetDataRequest{Path: k.root.meta(), Data: store.Encode(m), Version: m.version},
		k.append(epoch, store.Encode(record{Meta: true})),
		&zk.SetDataRequest{Path: k.root.log(epoch), Version: anyVersion},
	))
	return err
}

// barrierAsKnown is a barrier that fails unless meta is as this replica knows it, or is
// unreadable.
func (k *metaKeeper) barrierAsKnown(ctx context.Context, l *link) (*zk.Stat, error) {
	mark := k.trust.Sent()
	stat, err := k.setLog(ctx, l, k.check())
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

// Distrust implements store.Store. Other replicas learn of it from the log, or by their next
// write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	if err := s.reread(ctx, number); err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}
