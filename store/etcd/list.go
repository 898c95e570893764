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
	// listPage bounds the keys of one page of a list, and pageSize is the target for its bytes.
	listPage = 1000
	pageSize = 1 << 20
	// firstPage is the number of keys in a page before their size is known.
	firstPage = 100
)

// list reads all entries at one revision and resets g with them. If the store still has the
// history, that is the revision where g was interrupted or should begin, so that the watch
// reports the events since. list also reads the store's own record as they are now.
func (fd *feed) list(ctx context.Context, g *gaps) (int64, error) {
	newest, err := fd.readRecords(ctx)
	if err != nil {
		return 0, err
	}
	at := g.earlier(newest, time.Now())
	read, err := fd.listAt(ctx, cmp.Or(at, newest))
	if at > 0 && isCompacted(err) {
		fd.log.Info("the store has forgotten what happened since the feed ended", "revision", at)
		at = 0
		read, err = fd.listAt(ctx, newest)
	}
	switch {
	case err != nil:
		return 0, err
	case at == 0:
		at = newest
		g.setBehind(time.Time{})
	default:
		fd.log.Info("the feed begins in the past", "revision", at, "behind", newest-at)
	}
	floor := fd.trust.Floor()
	entries, number := read.at(at, floor)
	g.floor = floor
	g.Reset(store.Snapshot{Number: number, Entries: entries, Newest: uint64(newest) + floor})
	return at, nil
}

// readRecords reads the store's own record, and returns the revision of the answer.
func (fd *feed) readRecords(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := fd.meta.Reread(ctx); err != nil {
		return 0, err
	}
	return fd.meta.Known().At.Position, nil
}

// listAt reads the entries as of a revision.
func (fd *feed) listAt(ctx context.Context, revision int64) (read picture, err error) {
	page := newPager(fd.prefix + entriesDir)
	page.request.Revision = revision
	err = fd.eachKey(ctx, page, func(kv *mvccpb.KeyValue) { read.add(kv, fd.primaryAt(kv)) })
	return read, err
}

// picture holds the entries of one revision. All get their numbers from one floor, even if it
// rises meanwhile, because their order determines the holders.
type picture struct {
	entries   []*lock.Entry
	revisions []int64
}

// add adds an entry that was read, if there is one.
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

// eachKey reads the keys of a page and of all pages after it.
func (ks *keyspace) eachKey(ctx context.Context, page *pager, each func(*mvccpb.KeyValue)) error {
	for more := true; more; {
		resp, err := ks.tryRead(ctx, "list", page.next())
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

// pager reads a range of keys page by page. It sizes pages for about pageSize bytes, by the
// largest value so far.
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

// turn moves on to the next page. It reports whether there is one.
func (p *pager) turn(resp *pb.RangeResponse) bool {
	for _, kv := range resp.Kvs {
		p.largest = max(p.largest, len(kv.Key)+len(kv.Value))
	}
	if resp.More {
		p.request.Key = append(slices.Clone(resp.Kvs[len(resp.Kvs)-1].Key), 0)
	}
	return resp.More
}

// reasons are read concurrently with the feed, which passes them on a page at a time.
type reasons struct {
	pages chan reasonsPage
	task  *sync.WaitGroup
}

type reasonsPage struct {
	ends     []store.Ended
	complete bool
	err      error
}

// readReasons starts to read the kept ends. Each page is as of now, so compaction need not wait
// for a slow read. The watch reports what was recorded after the revision at.
func (fd *feed) readReasons(ctx context.Context, at int64) reasons {
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
		page := newPager(fd.prefix + endedDir)
		for {
			resp, err := fd.readPage(ctx, page.next())
			if err != nil {
				tell(reasonsPage{err: errors.Join(errReasons, err)})
				return
			}
			more := page.turn(resp)
			if !tell(reasonsPage{ends: fd.endsBefore(resp.Kvs, at), complete: !more}) || !more {
				return
			}
		}
	})
	return r
}

func (fd *feed) readPage(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, fd.timeout)
	defer cancel()
	return fd.read(ctx, "list reasons", r)
}

var errReasons = errors.New("the reasons of ends cannot be read")

func (fd *feed) endsBefore(kvs []*mvccpb.KeyValue, at int64) []store.Ended {
	var ended []store.Ended
	for _, kv := range kvs {
		if kv.ModRevision > at {
			continue
		}
		for _, e := range fd.decodeEnds(kv.Key, kv.Value) {
			ended = append(ended, e.Ended(fd.trust.Floor()))
		}
	}
	slices.SortStableFunc(ended, func(a, b store.Ended) int { return a.At.Compare(b.At) })
	return ended
}
