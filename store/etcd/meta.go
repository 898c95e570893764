package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/store"
)

// The store's own records, below meta/.
const (
	metaCluster  = metaDir + "cluster"  // the etcd cluster's id at first use
	metaTokenKey = metaDir + "tokenkey" // 32 random bytes that sign the lock tokens
	metaFloor    = metaDir + "floor"    // added to every revision
	metaDistrust = metaDir + "distrust" // a number that the store should have reached, but has not
	metaForm     = metaDir + "form"     // see [store.Form]
)

// meta is the store's own records as last read.
type meta struct {
	cluster  uint64
	tokenKey []byte
	floor    uint64
	distrust uint64
	form     int

	keys map[string]metaKey // by name, without the missing ones
	at   int64              // the revision at which they were read
}

// metaKey is one key of meta as last read.
type metaKey struct {
	good     bool // it could be decoded
	revision int64
	value    []byte
}

// complete reports whether all keys of meta, which are written together, exist and can be
// decoded. Earlier versions wrote no form.
func (m *meta) complete() bool {
	for _, name := range []string{metaCluster, metaTokenKey, metaFloor, metaDistrust} {
		if !m.keys[name].good {
			return false
		}
	}
	form, there := m.keys[metaForm]
	return form.good || !there
}

// records combines meta with the header of the answer that it came in.
func (m *meta) records(header *pb.ResponseHeader) store.Records {
	return store.Records{
		Position: uint64(header.Revision), Cluster: header.ClusterId,
		Kept: m.cluster, Floor: m.floor, Distrust: m.distrust, Form: m.form,
	}
}

// floorGiven returns the revision at which the fence floor was set, as far as known.
func (mk *metaKeeper) floorGiven() int64 {
	if m := mk.known.Load(); m != nil {
		return m.keys[metaFloor].revision
	}
	return 0
}

// metaKeeper keeps the store's own records as last read, and decides by them whether the store's
// numbers can be trusted.
type metaKeeper struct {
	*keyspace
	tokenKey []byte
	known    atomic.Pointer[meta] // as last read
}

// TokenKey returns the secret that signs the lock tokens. It is made on first use, and is the
// same for all replicas and after every restart.
func (s *Store) TokenKey() []byte { return s.meta.tokenKey }

// load reads meta, writes it on first use, applies the operator's floor, and decides whether the
// store's numbers can be trusted: see [store.Trust]. A restore of etcd from a snapshot changes
// its cluster id, unless the operator passes the old one.
func (mk *metaKeeper) load(ctx context.Context, floor uint64) error {
	err := mk.raise(ctx, floor)
	for errors.Is(err, errRaced) {
		err = mk.raise(ctx, floor)
	}
	if err == nil {
		err = mk.rereadRecords(ctx, 0)
	}
	if err == nil {
		err = store.CheckForm(mk.known.Load().form)
	}
	var final *finalError
	switch {
	case errors.As(err, &final):
		return final.cause
	case errors.Is(err, store.ErrRecords), errors.Is(err, store.ErrNewerForm),
		errors.Is(err, store.ErrOlderForm):
		return err
	case err != nil:
		return unavailable(err, "read the store's own records", false)
	}
	mk.tokenKey = mk.known.Load().tokenKey
	return nil
}

// finalError is an error that another attempt would not change.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

// errDamaged means that records below meta/ are missing or unreadable.
var errDamaged = store.RecordsDamaged(metaDir)

// raise writes the operator's floor, unless it is there. The floor only rises: the comparison
// fails if another replica was faster.
func (mk *metaKeeper) raise(ctx context.Context, floor uint64) error {
	m, header, err := mk.readAll(ctx)
	if err == nil && !m.complete() {
		m, header, err = mk.make(ctx, m, floor)
	}
	if err != nil {
		return err
	}
	if err := store.CheckForm(m.form); err != nil {
		return err
	}
	raises, err := m.records(header).Raises(floor)
	if err != nil {
		return &finalError{err}
	}
	if !raises {
		return nil
	}
	next := *m
	next.floor, next.cluster, next.distrust = floor, header.ClusterId, 0
	err = mk.replace(ctx, m, mk.puts(&next)...)
	if err == nil {
		m.records(header).TellLow(mk.log, floor, RestoredBump)
	}
	return err
}

// errRaced means that another replica changed a record between a read and a write.
var errRaced = errors.New("the record has changed")

// replace writes keys of meta if none has changed since the read.
func (mk *metaKeeper) replace(ctx context.Context, read *meta, puts ...*pb.RequestOp) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	txn := &pb.TxnRequest{Success: puts}
	for _, name := range []string{metaCluster, metaTokenKey, metaFloor, metaDistrust, metaForm} {
		txn.Compare = append(txn.Compare, modified([]byte(mk.prefix+name), read.keys[name].revision))
	}
	resp, err := mk.kv.Txn(ctx, txn)
	if err == nil && !resp.Succeeded {
		return errRaced
	}
	return err
}

// make writes meta on first use. If there are other keys, meta was deleted or damaged by hand.
// Then make needs a floor from the operator, because the old one is unknown. It leaves a store of
// another form alone.
func (mk *metaKeeper) make(
	ctx context.Context, found *meta, floor uint64,
) (*meta, *pb.ResponseHeader, error) {
	if found.keys[metaForm].good {
		if err := store.CheckForm(found.form); err != nil {
			return nil, nil, err
		}
	}
	all, err := mk.read(ctx, "meta", &pb.RangeRequest{
		Key: []byte(mk.prefix), RangeEnd: prefixEnd(mk.prefix), CountOnly: true,
	})
	if err != nil {
		return nil, nil, err
	}
	next := &meta{cluster: all.Header.ClusterId, floor: floor, form: store.Form}
	if all.Count > 0 {
		if m, header, err := mk.readAll(ctx); err != nil || m.complete() {
			return m, header, err // another replica just made it, and then used the store
		}
		if floor == 0 {
			return nil, nil, errDamaged
		}
		mk.log.Error(
			"the store's own records are made again; lock tokens may be void", "error", errDamaged,
		)
	}
	if err := store.CheckFloor(floor, uint64(all.Header.Revision)); err != nil {
		return nil, nil, &finalError{err}
	}
	puts := mk.puts(next)
	if !found.keys[metaTokenKey].good {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails: crypto/rand ends the program instead
		puts = append(puts, putOp([]byte(mk.prefix+metaTokenKey), secret, 0))
	}
	if err := mk.replace(ctx, found, puts...); err != nil {
		return nil, nil, err
	}
	return mk.readAll(ctx)
}

// rereadRecords reads the store's own records again and applies them. It records a lost past that
// they prove. told is an issued number, or 0.
func (mk *metaKeeper) rereadRecords(ctx context.Context, told uint64) error {
	for {
		lost, err := mk.trust.Reread(ctx, told, func(ctx context.Context) (store.Records, error) {
			m, header, err := mk.readAll(ctx)
			if err != nil {
				return store.Records{}, err
			}
			return mk.takeOver(m, header)
		})
		if err == nil {
			err = mk.settle(ctx, lost)
		}
		if !errors.Is(err, errRaced) {
			return err
		}
	}
}

// look reads the store's own records again after a reason for doubt.
func (s *Store) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.meta.rereadRecords(ctx, 0)
}

// takeOver keeps what was read and returns it as records.
func (mk *metaKeeper) takeOver(m *meta, header *pb.ResponseHeader) (store.Records, error) {
	if !m.complete() {
		return store.Records{}, errDamaged
	}
	r := m.records(header)
	r.Keep = func() { mk.known.Store(m) }
	return r, nil
}

// settle records a lost past, unless lost is 0, and then has the records read again.
func (mk *metaKeeper) settle(ctx context.Context, lost uint64) error {
	mk.trust.TellRefusal(mk.log)
	if lost == 0 {
		return nil
	}
	distrust := putOp([]byte(mk.prefix+metaDistrust), strconv.AppendUint(nil, lost, 10), 0)
	if err := mk.replace(ctx, mk.known.Load(), distrust); err != nil {
		return err
	}
	return errRaced
}

// unchanged compares the floor, the distrust and the form with what this replica knows of them.
// Each transaction that puts an entry has these comparisons. So no entry is granted below a floor
// that another replica has set, in a distrusted store, or behind a form that this replica does
// not understand.
func (mk *metaKeeper) unchanged() []*pb.Compare {
	m := mk.known.Load()
	return []*pb.Compare{
		valued([]byte(mk.prefix+metaFloor), m.keys[metaFloor].value),
		valued([]byte(mk.prefix+metaDistrust), m.keys[metaDistrust].value),
		modified([]byte(mk.prefix+metaForm), m.keys[metaForm].revision),
	}
}

// modified compares with the revision of a key's last write; 0 means that the key is missing.
func modified(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

func valued(key, value []byte) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Value{Value: value},
	}
}

// readAll reads all of meta, even if it is incomplete.
func (mk *metaKeeper) readAll(ctx context.Context) (*meta, *pb.ResponseHeader, error) {
	prefix := mk.prefix + metaDir
	// The trust in the answer is decided with the floor that is in it.
	resp, err := mk.readFrom(ctx, mk.conn.kv, "meta", &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: prefixEnd(prefix),
	})
	if err != nil {
		return nil, nil, err
	}
	m := &meta{keys: map[string]metaKey{}, at: resp.Header.Revision}
	for _, kv := range resp.Kvs {
		if err := m.set(string(kv.Key[len(mk.prefix):]), kv); err != nil {
			mk.log.Error("a record of the store's own cannot be read", "key", string(kv.Key), "error", err)
		}
	}
	return m, resp.Header, nil
}

// set stores a key, even if it cannot be decoded.
func (m *meta) set(key string, kv *mvccpb.KeyValue) (err error) {
	val := string(kv.Value)
	switch key {
	case metaCluster:
		m.cluster, err = strconv.ParseUint(val, 16, 64)
	case metaTokenKey:
		if m.tokenKey = kv.Value; val == "" {
			err = errors.New("it is empty")
		}
	case metaFloor:
		m.floor, err = strconv.ParseUint(val, 10, 64)
	case metaDistrust:
		m.distrust, err = strconv.ParseUint(val, 10, 64)
	case metaForm:
		m.form, err = strconv.Atoi(val)
	default:
		return nil
	}
	m.keys[key] = metaKey{good: err == nil, revision: kv.ModRevision, value: kv.Value}
	return err
}

func (mk *metaKeeper) puts(m *meta) []*pb.RequestOp {
	put := func(key, val string) *pb.RequestOp { return putOp([]byte(mk.prefix+key), []byte(val), 0) }
	return []*pb.RequestOp{
		put(metaCluster, strconv.FormatUint(m.cluster, 16)),
		put(metaFloor, strconv.FormatUint(m.floor, 10)),
		put(metaDistrust, strconv.FormatUint(m.distrust, 10)),
		put(metaForm, strconv.Itoa(m.form)),
	}
}

// Refusal implements store.Store.
func (s *Store) Refusal() error {
	if refusal := s.trust.Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// Distrust implements store.Store. Other replicas learn of it from their feeds, or by their next
// write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.meta.rereadRecords(ctx, number); err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}
