package etcd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// listPage is how many keys one page of a list has at most, and pageSize how
	// many bytes it should have.
	listPage = 1000
	pageSize = 1 << 20
	// firstPage is the number of keys of a page whose keys' size is not known.
	firstPage = 100
)

// list reads all entries, at one revision, and resets g with them: at the one where g was interrupted
// or is to begin, if that can be, so that what happened since is told. The store's own records are read
// as they are now.
func (s *Store) list(ctx context.Context, g *gaps) (int64, error) {
	var read picture
	at, err := s.listEntries(ctx, func(kv *mvccpb.KeyValue) { read.add(kv, s.primaryAt(kv)) })
	if err != nil {
		return 0, err
	}
	newest, present := at, read
	earlier, was, err := s.listEarlier(ctx, g, at)
	switch {
	case err != nil:
		return 0, err
	case earlier > 0:
		at, read = earlier, was
	default:
		g.setBehind(time.Time{})
	}
	notices, err := s.listNotices(ctx, at)
	if err != nil {
		return 0, err
	}
	floor := s.trust.Floor()
	entries, number := read.at(at, floor)
	g.floor = floor
	there := entries
	if at < newest { // of the past some are gone, and others have come since
		there, _ = present.at(newest, floor)
	}
	s.expirer.watchListed(there)
	g.Reset(store.Snapshot{Number: number, Entries: entries, Notices: s.attachedTo(entries, notices, floor), Newest: uint64(newest) + floor})
	return at, nil
}

// picture is entries that are read at one revision. The floor may rise meanwhile, so all
// get their numbers by one: it is their order that tells who holds.
type picture struct {
	entries   []*lock.Entry
	revisions []int64
}

// add adds what was read, unless it is no entry.
func (p *picture) add(kv *mvccpb.KeyValue, e *lock.Entry) {
	if e != nil {
		p.entries, p.revisions = append(p.entries, e), append(p.revisions, kv.CreateRevision)
	}
}

// at returns the entries in order, and the number of the revision.
func (p *picture) at(revision int64, floor uint64) ([]*lock.Entry, uint64) {
	for i, e := range p.entries {
		e.Number = uint64(p.revisions[i]) + floor
	}
	slices.SortFunc(p.entries, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return p.entries, uint64(revision) + floor
}

// listEntries reads the keys of all entries at the revision of the first page.
func (s *Store) listEntries(ctx context.Context, each func(*mvccpb.KeyValue)) (at int64, err error) {
	prefix := s.prefix + entriesDir
	page := newPager(prefix)
	resp, err := s.firstEntries(ctx, page.next())
	if err != nil {
		return 0, err
	}
	at = resp.Header.Revision
	page.request.Revision = at
	for _, kv := range resp.Kvs {
		each(kv)
	}
	if page.turn(resp) {
		err = s.eachKey(ctx, page, each)
	}
	return at, err
}

// eachKey reads the keys of a page and of all after it.
func (s *Store) eachKey(ctx context.Context, page *pager, each func(*mvccpb.KeyValue)) error {
	for more := true; more; {
		resp, err := s.tryRead(ctx, s.kv, "list", page.next())
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			each(kv)
		}
		more = page.turn(resp)
	}
	return nil
}

// firstEntries reads the first page together with the store's own records, which it
// takes over.
func (s *Store) firstEntries(ctx context.Context, r *pb.RangeRequest) (entries *pb.RangeResponse, err error) {
	own := s.prefix + metaDir
	ranged := func(r *pb.RangeRequest) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
	}
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{
		ranged(&pb.RangeRequest{Key: []byte(own), RangeEnd: prefixEnd(own)}), ranged(r),
	}}
	correction, err := s.trust.Anew(ctx, 0, func(ctx context.Context) (store.Records, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		resp, err := s.conn.kv.Txn(ctx, txn)
		if err != nil {
			return store.Records{}, err
		}
		m, err := s.meta.parse(resp.Responses[0].GetResponseRange().Kvs)
		if err != nil {
			s.log.Error("a record of the store's own cannot be read", "error", err)
		}
		entries = resp.Responses[1].GetResponseRange()
		entries.Header = resp.Header
		return s.meta.takeOver(ctx, m, resp.Header)
	})
	if err != nil {
		return nil, err
	}
	return entries, s.meta.settle(ctx, correction)
}

// pager asks for a range of keys page by page, so that a page has about pageSize
// bytes, judged by the largest value so far.
type pager struct {
	request *pb.RangeRequest
	largest int
}

func newPager(prefix string) *pager {
	return &pager{request: &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix)}}
}

// next returns the request for the next page.
func (p *pager) next() *pb.RangeRequest {
	p.request.Limit = firstPage
	if p.largest > 0 {
		p.request.Limit = int64(max(1, min(listPage, pageSize/p.largest)))
	}
	return p.request
}

// turn goes on behind a page. It reports whether there is more.
func (p *pager) turn(resp *pb.RangeResponse) bool {
	for _, kv := range resp.Kvs {
		p.largest = max(p.largest, len(kv.Key)+len(kv.Value))
	}
	if resp.More {
		p.request.Key = append(slices.Clone(resp.Kvs[len(resp.Kvs)-1].Key), 0)
	}
	return resp.More
}

// reasons are read beside the feed and told by it a page at a time.
type reasons struct {
	pages chan reasonsPage
	task  *sync.WaitGroup
}

type reasonsPage struct {
	ends     []store.Ended
	complete bool
	err      error
}

// readReasons begins to read what is remembered of ends. Each page is as of now:
// nothing is kept from compaction for it, however long it takes. What was recorded
// after the revision at is told by the watch.
func (s *Store) readReasons(ctx context.Context, at int64) reasons {
	r := reasons{pages: make(chan reasonsPage), task: &sync.WaitGroup{}}
	tell := func(p reasonsPage) bool {
		select {
		case r.pages <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	r.task.Go(func() {
		page := newPager(s.prefix + endedDir)
		for {
			resp, err := s.readPage(ctx, page.next())
			if err != nil {
				tell(reasonsPage{err: errors.Join(errReasons, err)})
				return
			}
			more := page.turn(resp)
			if !tell(reasonsPage{ends: s.endsBefore(resp.Kvs, at), complete: !more}) || !more {
				return
			}
		}
	})
	return r
}

func (s *Store) readPage(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.read(ctx, "list reasons", r)
}

var errReasons = errors.New("the reasons of ends cannot be read")

func (s *Store) endsBefore(kvs []*mvccpb.KeyValue, at int64) []store.Ended {
	var ended []store.Ended
	for _, kv := range kvs {
		if kv.ModRevision > at {
			continue
		}
		for _, e := range s.decodeEnds(kv.Key, kv.Value) {
			ended = append(ended, e.Ended(s.trust.Floor()))
		}
	}
	slices.SortStableFunc(ended, func(a, b store.Ended) int { return a.At.Compare(b.At) })
	return ended
}
