package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
)

// meta is what stood there when it was last read.
type meta struct {
	cluster  uint64
	tokenKey []byte
	floor    uint64
	distrust uint64

	good map[string]bool  // which of its keys could be read
	bad  map[string]int64 // which could not, and the revisions of these
}

// complete reports whether all keys of meta, which are written together, are there
// and can be read.
func (m *meta) complete() bool { return len(m.good) == 4 }

// TokenKey returns the secret behind the lock tokens: made on first use, the
// same for all replicas and after every restart.
func (s *Store) TokenKey() []byte { return s.tokenKey }

// loadMeta reads meta, writes it on first use, and decides whether the store's
// numbers can be trusted.
//
// After a restore from a backup, revisions start over from an old one, and
// fences would be handed out a second time. Two signs give it away: etcd's
// cluster id, which a restore changes, differs from the one kept in the data;
// or a lock token carries a number that the store has not reached ([Store.Distrust]).
// Either way nothing is granted until an operator gives a floor.
func (s *Store) loadMeta(ctx context.Context, floor uint64) error {
	m, header, err := s.readMeta(ctx)
	if err == nil && !m.complete() {
		m, header, err = s.makeMeta(ctx, floor)
	}
	switch {
	case errors.Is(err, errMetaGone), errors.Is(err, errMetaDamaged):
		return err
	case err != nil:
		return unavailable(err, "read the store's own records", false)
	}
	if floor != 0 && floor < m.floor {
		return fmt.Errorf("the fence floor %d is below %d, which the store was given before", floor, m.floor)
	}
	if floor > m.floor {
		if reached := uint64(header.Revision) + floor; reached <= m.distrust {
			return fmt.Errorf("the fence floor %d is too low: fences would go on at %d, and %d was handed out before", floor, reached, m.distrust)
		}
		m.floor, m.cluster, m.distrust = floor, header.ClusterId, 0
		if err := s.writeMeta(ctx, m); err != nil {
			return unavailable(err, "write the fence floor", true)
		}
	}
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	s.meta, s.tokenKey = m, m.tokenKey
	s.floor.Store(m.floor)
	s.judge(header.ClusterId)
	return nil
}

var errMetaGone = store.MetaGone(metaDir)

var errMetaDamaged = errors.New("one of the store's own records cannot be read: a server that still runs puts it back, so try again; if none runs, restore it")

// makeMeta writes meta on first use. If there is anything else, somebody deleted it:
// without the floor that it had, fences could be handed out a second time.
func (s *Store) makeMeta(ctx context.Context, floor uint64) (meta, *pb.ResponseHeader, error) {
	all, err := s.read(ctx, "meta", &pb.RangeRequest{Key: []byte(s.prefix), RangeEnd: prefixEnd(s.prefix), CountOnly: true})
	if err != nil {
		return meta{}, nil, err
	}
	if all.Count > 0 {
		if m, header, err := s.readMeta(ctx); err != nil || m.complete() {
			return m, header, err // another replica made it just now, and then used the store
		}
		if floor == 0 {
			return meta{}, nil, errMetaGone
		}
		s.log.Error("the store's own records were deleted, which nobody but us should do; lock tokens given out before may be void", "prefix", s.prefix+metaDir)
	}
	if err := s.createMeta(ctx, all.Header.ClusterId, floor); err != nil {
		return meta{}, nil, err
	}
	return s.readMeta(ctx)
}

// putBack writes those of meta's keys that somebody deleted or damaged, as this
// replica knows them, unless another one was faster.
func (s *Store) putBack(ctx context.Context, found meta) error {
	s.metaMu.Lock()
	known := s.meta
	s.metaMu.Unlock()
	s.log.Error("the store's own records were deleted or damaged, which nobody but us should do; they are put back", "prefix", s.prefix+metaDir)
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	for _, put := range append(s.metaPuts(known), putOp([]byte(s.prefix+metaTokenKey), known.tokenKey, 0)) {
		key := put.GetRequestPut().Key
		name := strings.TrimPrefix(string(key), s.prefix)
		if found.good[name] {
			continue
		}
		txn := &pb.TxnRequest{Compare: []*pb.Compare{modified(key, found.bad[name])}, Success: []*pb.RequestOp{put}}
		if _, err := s.conn.kv.Txn(ctx, txn); err != nil {
			return err
		}
	}
	return nil
}

// modified compares with the revision of a key's last write, 0 if there is no key.
func modified(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

// judge decides from what is remembered whether anything may be granted. The
// caller holds metaMu.
func (s *Store) judge(cluster uint64) {
	const remedy = "; nothing is granted until the server is started with --fence-floor set above every fence ever handed out"
	var why string
	switch {
	case s.meta.cluster != cluster:
		why = "the store was restored from a backup: its cluster id is not the one in its data" + remedy
	case s.meta.distrust != 0:
		why = fmt.Sprintf("the store lost its past: fence %d was handed out, but the store has not reached it%s", s.meta.distrust, remedy)
	default:
		s.distrusted.Store(nil)
		return
	}
	s.distrusted.Store(&why)
	s.log.Error("nothing is granted", "why", why)
}

func (s *Store) readMeta(ctx context.Context) (meta, *pb.ResponseHeader, error) {
	prefix := s.prefix + metaDir
	resp, err := s.read(ctx, "meta", &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix)})
	if err != nil {
		return meta{}, nil, err
	}
	var m meta
	for _, kv := range resp.Kvs {
		if err := m.set(string(kv.Key[len(s.prefix):]), kv); err != nil {
			return meta{}, nil, err
		}
	}
	return m, resp.Header, nil
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
	default:
		return nil
	}
	if m.good == nil {
		m.good, m.bad = map[string]bool{}, map[string]int64{}
	}
	if err != nil {
		m.bad[key] = kv.ModRevision
		return errors.Join(fmt.Errorf("key %s: %w", key, err), errMetaDamaged)
	}
	m.good[key] = true
	return nil
}

// createMeta writes the first records, unless another replica was faster.
func (s *Store) createMeta(ctx context.Context, cluster, floor uint64) error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	key := []byte(s.prefix + metaTokenKey)
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{created(key, 0)},
		Success: append(s.metaPuts(meta{cluster: cluster, floor: floor}), putOp(key, secret, 0)),
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := s.conn.kv.Txn(ctx, txn)
	return err
}

func (s *Store) writeMeta(ctx context.Context, m meta) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := s.conn.kv.Txn(ctx, &pb.TxnRequest{Success: s.metaPuts(m)})
	return err
}

func (s *Store) metaPuts(m meta) []*pb.RequestOp {
	put := func(key, val string) *pb.RequestOp { return putOp([]byte(s.prefix+key), []byte(val), 0) }
	return []*pb.RequestOp{
		put(metaCluster, strconv.FormatUint(m.cluster, 16)),
		put(metaFloor, strconv.FormatUint(m.floor, 10)),
		put(metaDistrust, strconv.FormatUint(m.distrust, 10)),
	}
}

// Distrust implements store.Store. Other replicas learn of it by their feeds.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	why := fmt.Sprintf("the store lost its past: fence %d was handed out, but the store has not reached it", number)
	s.distrusted.CompareAndSwap(nil, &why)
	err := s.raiseDistrust(ctx, number)
	for errors.Is(err, errRaced) {
		err = s.raiseDistrust(ctx, number)
	}
	if err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}

// errRaced says that another replica changed a record between a read and a write.
var errRaced = errors.New("the record has changed")

// raiseDistrust writes the number unless a greater one is there.
func (s *Store) raiseDistrust(ctx context.Context, number uint64) error {
	key := []byte(s.prefix + metaDistrust)
	resp, err := s.read(ctx, "meta", &pb.RangeRequest{Key: key})
	if err != nil {
		return err
	}
	var m meta
	var revision int64
	for _, kv := range resp.Kvs {
		if err := m.set(metaDistrust, kv); err != nil {
			return err
		}
		revision = kv.ModRevision
	}
	if m.distrust >= number {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	txn, err := s.conn.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{modified(key, revision)},
		Success: []*pb.RequestOp{putOp(key, strconv.AppendUint(nil, number, 10), 0)},
	})
	if err == nil && !txn.Succeeded {
		return errRaced
	}
	return err
}
