package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// ownRecord is the store's own record.
type ownRecord struct {
	Cluster  uint64 `json:"cluster,omitempty,string"` // that wrote it, if the store has identities
	TokenKey []byte `json:"token_key"`                // 32 random bytes that sign the lock tokens
	Floor    uint64 `json:"floor"`                    // added to every position
	Distrust uint64 `json:"distrust,omitempty"`       // a number that was issued, but not reached
	Form     int    `json:"form"`                     // see [store.Form]
}

// records combines the record with the answer in which it came.
func (o *ownRecord) records(at At) store.Records {
	return store.Records{
		Position: uint64(at.Position), Cluster: at.Cluster, Kept: o.Cluster, Floor: o.Floor,
		Distrust: o.Distrust, Form: o.Form,
	}
}

// parseOwn parses the record. Its error means that it was deleted or changed by hand.
func parseOwn(s State) (o ownRecord, err error) {
	if !s.Found {
		return o, errors.New("it is missing")
	}
	if err = json.Unmarshal(s.Data, &o); err == nil && len(o.TokenKey) == 0 {
		err = errors.New("it has no key for lock tokens")
	}
	if err == nil && !bytes.Contains(s.Data, []byte(`"floor":`)) {
		err = errors.New("it has no floor")
	}
	return o, err
}

// Meta keeps the store's own record as last read, and decides by it whether the store's numbers
// can be trusted: see [store.Trust].
type Meta struct {
	MetaConfig
	tokenKey []byte
	known    atomic.Pointer[State] // as last taken over
}

// MetaConfig configures a [Meta].
type MetaConfig struct {
	Driver interface {
		Driver

		// Used returns whether anything was ever written, besides the value at [MetaKey]. An error
		// of [store.CheckForm] means that another version of the server has written it.
		Used(ctx context.Context) (bool, error)
	}
	Trust *store.Trust
	Log   *slog.Logger
	Path  string // of the record, for people

	// Jump is how far a restore alone can move positions forward.
	Jump uint64
}

var _ Own = (*Meta)(nil)

// NewMeta returns a Meta that has read nothing.
func NewMeta(cfg MetaConfig) *Meta { return &Meta{MetaConfig: cfg} }

// TokenKey returns the secret that signs the lock tokens, once [Meta.Load] has read it. It is made
// on first use, and is the same for all replicas and after every restart.
func (m *Meta) TokenKey() []byte { return m.tokenKey }

// Known returns the state of the record as last taken over.
func (m *Meta) Known() (s State) {
	if known := m.known.Load(); known != nil {
		s = *known
	}
	return s
}

// Unchanged implements [Own]. Each transaction that puts an entry has this condition, so that no
// entry is granted below a floor that another replica has set, in a distrusted store, or behind a
// form that this replica does not understand.
func (m *Meta) Unchanged() []If { return []If{{MetaKey(), m.Known()}} }

// Refusal implements [Own].
func (m *Meta) Refusal() *lock.Error { return m.Trust.Refusal() }

// Number implements [Own].
func (m *Meta) Number(position int64) uint64 { return m.Trust.Number(position) }

// Unread is an error of the driver, and not of what it has read.
type Unread struct{ Cause error }

func (u *Unread) Error() string { return u.Cause.Error() }
func (u *Unread) Unwrap() error { return u.Cause }

// Load reads the record, writes it on first use, and applies the operator's floor. An [Unread]
// means that the store did not answer; another attempt would not change any other error.
func (m *Meta) Load(ctx context.Context, floor uint64) error {
	err := m.raise(ctx, floor)
	for isRaced(err) && ctx.Err() == nil {
		err = m.raise(ctx, floor)
	}
	if err == nil {
		err = m.Reread(ctx)
	}
	if err != nil {
		return err
	}
	o, err := parseOwn(m.Known())
	if err != nil {
		return m.damaged(err)
	}
	m.tokenKey = o.TokenKey
	return store.CheckForm(o.Form)
}

// raise writes the operator's floor, unless it is there. The floor only rises: the write fails if
// another replica was faster.
func (m *Meta) raise(ctx context.Context, floor uint64) error {
	s, err := m.look(ctx)
	if err != nil {
		return err
	}
	o, bad := parseOwn(s)
	if bad != nil {
		if err := m.make(ctx, s, floor); err != nil {
			return err
		}
		return m.raise(ctx, floor)
	}
	if err := store.CheckForm(o.Form); err != nil {
		return err
	}
	was := o.records(s.At)
	raises, err := was.Raises(floor)
	if err != nil || !raises {
		return err
	}
	o.Floor, o.Cluster, o.Distrust = floor, s.At.Cluster, 0
	if err := m.write(ctx, s, o); err != nil {
		return err
	}
	was.TellLow(m.Log, floor, m.Jump)
	return nil
}

// make writes the record on first use. If the store has been used, it was deleted or damaged by
// hand. Then make needs a floor from the operator, because the old one is unknown.
func (m *Meta) make(ctx context.Context, s State, floor uint64) error {
	used, err := m.Driver.Used(ctx)
	switch {
	case errors.Is(err, store.ErrOlderForm), errors.Is(err, store.ErrNewerForm):
		return err
	case err != nil:
		return &Unread{err}
	}
	if used || s.Found {
		if s, err = m.look(ctx); err != nil {
			return err
		}
		o, bad := parseOwn(s)
		switch {
		case bad == nil:
			return nil // another replica just made it, and then used the store
		case o.Form > store.Form:
			return store.CheckForm(o.Form)
		case floor == 0:
			return m.damaged(bad)
		}
		m.Log.Error("the store's own record is made again; all lock tokens from before are void",
			"path", m.Path, "error", bad)
	}
	if err := store.CheckFloor(floor, uint64(s.At.Position)); err != nil {
		return err
	}
	o := ownRecord{Cluster: s.At.Cluster, TokenKey: make([]byte, 32), Floor: floor, Form: store.Form}
	_, _ = rand.Read(o.TokenKey) // never fails: crypto/rand ends the program instead
	return m.write(ctx, s, o)
}

func (m *Meta) damaged(why error) error {
	return errors.Join(store.RecordsDamaged(m.Path), why)
}

// look reads the record, in as many attempts as ctx allows.
func (m *Meta) look(ctx context.Context) (State, error) {
	for {
		s, err := m.Driver.Look(ctx, MetaKey(), true)
		if err == nil {
			return s, nil
		}
		if final := (*lock.Error)(nil); errors.As(err, &final) || store.Pause(ctx, recordPause) != nil {
			return s, &Unread{err}
		}
	}
}

// write replaces the record, if it is still as it was.
func (m *Meta) write(ctx context.Context, was State, o ownRecord) error {
	_, err := m.Driver.Commit(ctx, Txn{
		If: []If{{MetaKey(), was}}, Put: []Put{{Key: MetaKey(), Value: store.Encode(o)}}, Frees: true,
	})
	if err != nil && !isRaced(err) {
		return &Unread{err}
	}
	return err
}

// Reread implements [Own]: it reads the record again and applies it. It records a lost past that it
// proves.
func (m *Meta) Reread(ctx context.Context) error { return m.Distrust(ctx, 0) }

// Distrust is Reread with a number that was issued, or 0.
func (m *Meta) Distrust(ctx context.Context, told uint64) error {
	for {
		lost, err := m.Trust.Reread(ctx, told, m.Ask)
		m.Trust.TellRefusal(m.Log)
		if err == nil && lost == 0 {
			return nil
		}
		if err == nil {
			err = m.distrust(ctx, lost)
		}
		if err != nil && !isRaced(err) {
			return err
		}
		if err := store.Pause(ctx, recordPause); err != nil {
			return &Unread{err}
		}
	}
}

// Ask returns what the record says, for [store.Trust.Reread].
func (m *Meta) Ask(ctx context.Context) (store.Records, error) {
	s, err := m.look(ctx)
	if err != nil {
		return store.Records{}, err
	}
	o, err := parseOwn(s)
	if err == nil && m.tokenKey != nil && !bytes.Equal(o.TokenKey, m.tokenKey) {
		err = errors.New("it has another key for lock tokens")
	}
	if err != nil {
		return store.Records{}, m.damaged(err)
	}
	r := o.records(s.At)
	r.Keep = func() { m.known.Store(&s) }
	return r, nil
}

// distrust records a lost past. The record is then read again.
func (m *Meta) distrust(ctx context.Context, lost uint64) error {
	s := m.Known()
	o, err := parseOwn(s)
	if err != nil {
		return m.damaged(err)
	}
	o.Distrust = lost
	return m.write(ctx, s, o)
}
