package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/store"
)

// What the store remembers about itself, below meta/.
const (
	metaCluster  = metaDir + "cluster"  // the etcd cluster's id when it was first used
	metaTokenKey = metaDir + "tokenkey" // 32 random bytes behind the lock tokens
	metaFloor    = metaDir + "floor"    // added to every revision
	metaDistrust = metaDir + "distrust" // a number that the store must have reached, but has not
	metaForm     = metaDir + "form"     // the lowest that must be understood, see [store.Form]; not there is 1
)

// meta is what stood there when it was last read.
type meta struct {
	cluster  uint64
	tokenKey []byte
	floor    uint64
	distrust uint64
	form     int

	keys map[string]metaKey // by their names; what is not there is missing
	at   int64              // the revision at which they were read
}

// metaKey is one of meta's keys as it was read.
type metaKey struct {
	good     bool // it could be read
	revision int64
	value    []byte
}

// complete reports whether all keys of meta, which are written together, are there
// and can be read.
func (m *meta) complete() bool {
	for _, name := range []string{metaCluster, metaTokenKey, metaFloor, metaDistrust} {
		if !m.keys[name].good {
			return false
		}
	}
	form, there := m.keys[metaForm]
	return form.good || !there
}

// records returns what meta says beside the header of the answer that it came with.
func (m *meta) records(header *pb.ResponseHeader) store.Records {
	return store.Records{
		Position: uint64(header.Revision), Cluster: header.ClusterId,
		Kept: m.cluster, Floor: m.floor, Distrust: m.distrust, Form: m.form,
	}
}

// floorGiven returns at which revision the fence floor was given, as far as that is known.
func (mk *metaKeeper) floorGiven() int64 {
	if m := mk.known.Load(); m != nil {
		return m.keys[metaFloor].revision
	}
	return 0
}

// formGiven returns at which revision the form was asked for last, as far as that is known.
func (mk *metaKeeper) formGiven() int64 {
	if m := mk.known.Load(); m != nil {
		return m.keys[metaForm].revision
	}
	return 0
}

// metaKeeper keeps the store's own records as they were read last, and decides by them
// whether the store's numbers can be trusted.
type metaKeeper struct {
	*keyspace
	tokenKey []byte
	known    atomic.Pointer[meta] // as it was read last
}

// TokenKey returns the secret behind the lock tokens: made on first use, the
// same for all replicas and after every restart.
func (s *Store) TokenKey() []byte { return s.meta.tokenKey }

// load reads meta, writes it on first use, takes over the floor that the
// operator gave, and decides whether the store's numbers can be trusted: see
// [store.Trust]. A restore of etcd from a snapshot changes its cluster id, unless
// it is told the old one.
func (mk *metaKeeper) load(ctx context.Context, floor uint64) error {
	err := mk.raise(ctx, floor)
	for errors.Is(err, errRaced) {
		err = mk.raise(ctx, floor)
	}
	if err == nil {
		err = mk.readAnew(ctx, 0)
	}
	if err == nil {
		err = mk.trust.Understands(mk.known.Load().form)
	}
	var final *finalError
	switch {
	case errors.As(err, &final):
		return final.cause
	case errors.Is(err, errMetaGone), errors.Is(err, errMetaDamaged), errors.Is(err, store.ErrNewerForm):
		return err
	case err != nil:
		return unavailable(err, "read the store's own records", false)
	}
	mk.tokenKey = mk.known.Load().tokenKey
	return nil
}

// finalError is one that another attempt would not change.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

var errMetaGone = store.MetaGone(metaDir)

var errMetaDamaged = errors.New("one of the store's own records cannot be read: a server that still runs puts it back, so try again; if none runs, restore it")

// raise writes the floor that the operator gave, unless it is there. It only ever
// rises: the comparison fails if another replica was faster.
func (mk *metaKeeper) raise(ctx context.Context, floor uint64) error {
	m, header, err := mk.readAll(ctx)
	if err == nil && !m.complete() {
		m, header, err = mk.make(ctx, floor)
	}
	if err != nil {
		return err
	}
	if err := mk.trust.Understands(m.form); err != nil {
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

// errRaced says that another replica changed a record between a read and a write.
var errRaced = errors.New("the record has changed")

// replace writes keys of meta if none has changed since it was read.
func (mk *metaKeeper) replace(ctx context.Context, read *meta, puts ...*pb.RequestOp) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	txn := &pb.TxnRequest{Success: puts}
	for _, name := range []string{metaCluster, metaFloor, metaDistrust, metaForm} {
		txn.Compare = append(txn.Compare, modified([]byte(mk.prefix+name), read.keys[name].revision))
	}
	resp, err := mk.kv.Txn(ctx, txn)
	if err == nil && !resp.Succeeded {
		return errRaced
	}
	return err
}

// make writes meta on first use. If there is anything else, somebody deleted it:
// without the floor that it had, fences could be handed out a second time.
func (mk *metaKeeper) make(ctx context.Context, floor uint64) (*meta, *pb.ResponseHeader, error) {
	all, err := mk.read(ctx, "meta", &pb.RangeRequest{Key: []byte(mk.prefix), RangeEnd: prefixEnd(mk.prefix), CountOnly: true})
	if err != nil {
		return nil, nil, err
	}
	if all.Count > 0 {
		if m, header, err := mk.readAll(ctx); err != nil || m.complete() {
			return m, header, err // another replica made it just now, and then used the store
		}
		if floor == 0 {
			return nil, nil, errMetaGone
		}
		mk.log.Error("the store's own records were deleted, which nobody but us should do; lock tokens given out before may be void", "prefix", mk.prefix+metaDir)
	}
	if err := store.CheckFloor(floor, uint64(all.Header.Revision)); err != nil {
		return nil, nil, &finalError{err}
	}
	if err := mk.create(ctx, all.Header.ClusterId, floor); err != nil {
		return nil, nil, err
	}
	return mk.readAll(ctx)
}

// create writes the first records, unless another replica was faster.
func (mk *metaKeeper) create(ctx context.Context, cluster, floor uint64) error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	key := []byte(mk.prefix + metaTokenKey)
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{created(key, 0)},
		Success: append(mk.puts(&meta{cluster: cluster, floor: floor}), putOp(key, secret, 0)),
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := mk.kv.Txn(ctx, txn)
	return err
}

// readAnew reads the store's own records and takes them over. It records a lost past
// that they show, and puts right what somebody did to them by hand. told is a number
// that was handed out, or 0.
func (mk *metaKeeper) readAnew(ctx context.Context, told uint64) error {
	for {
		correction, err := mk.trust.Anew(ctx, told, func(ctx context.Context) (store.Records, error) {
			m, header, err := mk.readAll(ctx)
			if err != nil && !errors.Is(err, errMetaDamaged) {
				return store.Records{}, err
			}
			return mk.takeOver(ctx, m, header)
		})
		if err == nil {
			err = mk.settle(ctx, correction)
		}
		if !errors.Is(err, errRaced) {
			return err
		}
	}
}

// look reads anew what has become doubtful.
func (s *Store) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.meta.readAnew(ctx, 0)
}

// takeOver returns what was read, to be kept, if it is whole. What is not is put back as this
// replica knows it.
func (mk *metaKeeper) takeOver(ctx context.Context, m *meta, header *pb.ResponseHeader) (store.Records, error) {
	if !m.complete() {
		return store.Records{}, errors.Join(errMetaGone, mk.putBack(ctx, m))
	}
	if known := mk.known.Load(); known != nil {
		m.tokenKey = known.tokenKey // the tokens that were given out here are bound to this one
	}
	r := m.records(header)
	r.Keep = func() { mk.known.Store(m) }
	return r, nil
}

// settle does what a correction asks for, and then has the records read again.
func (mk *metaKeeper) settle(ctx context.Context, v store.Correction) error {
	mk.trust.TellRefusal(mk.log)
	m := mk.known.Load()
	put := func(key string, number uint64) error {
		err := mk.replace(ctx, m, putOp([]byte(mk.prefix+key), strconv.AppendUint(nil, number, 10), 0))
		if err == nil {
			err = errRaced
		}
		return err
	}
	switch {
	case v.Form != 0:
		return put(metaForm, uint64(v.Form))
	case v.Lost != 0:
		return put(metaDistrust, v.Lost)
	case v.Lowered:
		mk.log.Error("the fence floor was lowered, which nobody should do; it is put back", "floor", mk.trust.Floor())
		return put(metaFloor, mk.trust.Floor())
	}
	return nil
}

// putBack writes those of meta's keys that somebody deleted or damaged, as this
// replica knows them, and deletes one that it knows not to be there, unless another
// replica was faster.
func (mk *metaKeeper) putBack(ctx context.Context, found *meta) error {
	known := mk.known.Load()
	if known == nil {
		return nil
	}
	mk.log.Error("the store's own records were deleted or damaged, which nobody but us should do; they are put back", "prefix", mk.prefix+metaDir)
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	ops := append(mk.puts(known), putOp([]byte(mk.prefix+metaTokenKey), known.tokenKey, 0))
	if _, there := found.keys[metaForm]; there && known.form == 0 {
		ops = append(ops, deleteOp([]byte(mk.prefix+metaForm)))
	}
	for _, op := range ops {
		key := slices.Concat(op.GetRequestPut().GetKey(), op.GetRequestDeleteRange().GetKey()) // one of the two
		name := strings.TrimPrefix(string(key), mk.prefix)
		if found.keys[name].good {
			continue
		}
		txn := &pb.TxnRequest{Compare: []*pb.Compare{modified(key, found.keys[name].revision)}, Success: []*pb.RequestOp{op}}
		if _, err := mk.kv.Txn(ctx, txn); err != nil {
			return err
		}
	}
	return nil
}

// unchanged compares the floor, the distrust and the form with what this replica knows of
// them. Each transaction that puts an entry has these comparisons: none is granted
// below a floor that another replica was given, nor in a store that one distrusts, nor
// behind what this replica does not understand.
func (mk *metaKeeper) unchanged() []*pb.Compare {
	m := mk.known.Load()
	return []*pb.Compare{
		valued([]byte(mk.prefix+metaFloor), m.keys[metaFloor].value),
		valued([]byte(mk.prefix+metaDistrust), m.keys[metaDistrust].value),
		modified([]byte(mk.prefix+metaForm), m.keys[metaForm].revision),
	}
}

// modified compares with the revision of a key's last write, 0 if there is no key.
func modified(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

func valued(key, value []byte) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Value{Value: value}}
}

// readAll reads all of meta. If one of its keys cannot be read, the error is
// errMetaDamaged and the rest is returned all the same.
func (mk *metaKeeper) readAll(ctx context.Context) (*meta, *pb.ResponseHeader, error) {
	prefix := mk.prefix + metaDir
	// What the answer proves is judged with the floor that is in it.
	resp, err := mk.readFrom(ctx, mk.conn.kv, "meta", &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix)})
	if err != nil {
		return nil, nil, err
	}
	m, err := mk.parse(resp.Kvs)
	m.at = resp.Header.Revision
	return m, resp.Header, err
}

func (mk *metaKeeper) parse(kvs []*mvccpb.KeyValue) (*meta, error) {
	m := &meta{keys: map[string]metaKey{}}
	var damaged error
	for _, kv := range kvs {
		if err := m.set(string(kv.Key[len(mk.prefix):]), kv); err != nil {
			damaged = err
		}
	}
	return m, damaged
}

// set takes over a key. One that cannot be read is noted too.
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
	if err != nil {
		return errors.Join(fmt.Errorf("key %s: %w", key, err), errMetaDamaged)
	}
	return nil
}

func (mk *metaKeeper) puts(m *meta) []*pb.RequestOp {
	put := func(key, val string) *pb.RequestOp { return putOp([]byte(mk.prefix+key), []byte(val), 0) }
	puts := []*pb.RequestOp{
		put(metaCluster, strconv.FormatUint(m.cluster, 16)),
		put(metaFloor, strconv.FormatUint(m.floor, 10)),
		put(metaDistrust, strconv.FormatUint(m.distrust, 10)),
	}
	if m.form != 0 {
		puts = append(puts, put(metaForm, strconv.Itoa(m.form)))
	}
	return puts
}

// require returns when the store's records say that who uses it has to understand the
// form, so that none who does not reads what is written then.
func (s *Store) require(ctx context.Context, form int) error {
	if form <= 1 || s.meta.known.Load().form >= form {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.trust.Need(form)
	if err := s.meta.readAnew(ctx, 0); err != nil {
		return unavailable(err, "record the form of what is stored", false)
	}
	return nil
}

// Refusal implements store.Store.
func (s *Store) Refusal() error {
	if refusal := s.trust.Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// Distrust implements store.Store. Other replicas learn of it by their feeds, or
// by their next write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.meta.readAnew(ctx, number); err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}
