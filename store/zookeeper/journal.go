package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

// rotated is the data of a log that is no longer in use.
const rotated = "rotated"

// journal is the log in which every change of a queue has a record. It knows which log is in use,
// its newest number, and its records.
type journal struct {
	*tree
	trust *store.Trust
	epoch atomic.Int32  // of the log that is in use
	moved chan struct{} // another log may be in use
}

func newJournal(t *tree, trust *store.Trust) *journal {
	return &journal{tree: t, trust: trust, moved: make(chan struct{}, 1)}
}

func (j *journal) number(zxid int64) uint64 { return j.trust.Number(zxid) }

func (j *journal) zxid(number uint64) int64 { return j.trust.Position(number) }

// barrier sets the log's data. ZooKeeper's reads may be old, even after a sync (ZOOKEEPER-1675);
// a write is not. Reads on the same connection after it are at least as new, and all followers
// learn its number.
func (j *journal) barrier(ctx context.Context, c *connector) (*zk.Stat, error) {
	for {
		l, err := c.get(ctx)
		if err != nil {
			return nil, err
		}
		stat, err := j.barrierOn(ctx, l)
		if err == nil || errors.Is(err, zk.ErrNoAuth) || store.Pause(ctx, firstPause) != nil {
			return stat, err
		}
	}
}

func (j *journal) barrierOn(ctx context.Context, l *link) (*zk.Stat, error) {
	mark := j.trust.Sent()
	stat, err := j.setLog(ctx, l)
	if err == nil {
		j.trust.Received(mark, stat.Mzxid, 0)
	}
	return stat, err
}

// errRaced means that a check of [journal.setLog] does not hold.
var errRaced = errors.New("the store's own record has changed")

// setLog sets the log's data, if all the checks hold.
func (j *journal) setLog(ctx context.Context, l *link, checks ...any) (*zk.Stat, error) {
	epoch := j.epoch.Load()
	ops := append([]any{&zk.CheckVersionRequest{Path: j.root.epoch(), Version: epoch}}, checks...)
	ops = append(ops, &zk.SetDataRequest{Path: j.root.log(epoch), Version: -1})
	results, err := do(ctx, l, multi(ops...))
	if err == nil {
		return results[len(results)-1].Stat, nil
	}
	failed := failedOp(results)
	switch {
	case !answered(err) || errors.Is(err, zk.ErrNoAuth):
	case failed > 0 && failed <= len(checks):
		err = errors.Join(errRaced, err)
	default:
		j.findLog()
	}
	return nil, err
}

// append is the operation that appends a record.
func (j *journal) append(epoch int32, data []byte) any {
	return &zk.CreateRequest{
		Path: j.root.log(epoch) + "/", Data: data, Acl: j.acl, Flags: zk.FlagSequence,
	}
}

// loadEpoch finds out which log is in use, and makes the first one.
func (j *journal) loadEpoch(ctx context.Context) error {
	n, err := onLink(ctx, j.reads, get(j.root.epoch()))
	if err != nil {
		return err
	}
	if err := j.ensure(ctx, j.reads, j.root.log(n.stat.Version)); err != nil {
		return err
	}
	j.epoch.Store(n.stat.Version)
	return nil
}

// findLog asks the upkeep which log is in use.
func (j *journal) findLog() {
	select {
	case j.moved <- struct{}{}:
	default: // the upkeep will read it anyway
	}
}

// followEpoch reads which log is in use. Only Open makes a log. If a person deletes one, its
// protection against late writes is gone too.
func (j *journal) followEpoch(ctx context.Context) error {
	n, err := onLink(ctx, j.reads, get(j.root.epoch()))
	if err != nil {
		return j.deleted(j.root.epoch(), err)
	}
	if j.epoch.Swap(n.stat.Version) != n.stat.Version {
		j.log.Info("another log is in use", "epoch", n.stat.Version)
	}
	_, err = onLink(ctx, j.reads, get(j.root.log(n.stat.Version)))
	return j.deleted(j.root.log(n.stat.Version), err)
}

// rotate begins another log before the names of records overflow. Writers and followers find out
// from the old one. It is read for the reasons of ends until it is retired.
func (j *journal) rotate(ctx context.Context) error {
	was := j.epoch.Load()
	_, err := onLink(ctx, j.reads, multi(
		&zk.SetDataRequest{Path: j.root.epoch(), Version: was}, j.create(j.root.log(was+1), nil),
		&zk.SetDataRequest{Path: j.root.log(was), Data: []byte(rotated), Version: anyVersion},
	))
	if err != nil && !errors.Is(err, zk.ErrBadVersion) {
		return err
	}
	return j.followEpoch(ctx)
}

// readHead reads how long the log is.
func (j *journal) readHead(ctx context.Context, l *link, epoch int32) (*zk.Stat, error) {
	head, err := do(ctx, l, get(j.root.log(epoch)))
	if err == nil && string(head.data) == rotated {
		err = errRotated
	}
	return head.stat, err
}

// records reads the records from one up to but not including another.
func (j *journal) records(ctx context.Context, l *link, epoch, from, to int32) ([]written, error) {
	if to <= from {
		return nil, nil
	}
	all := make([]written, to-from)
	err := inParallel(len(all), func(i int) (err error) {
		all[i], err = j.readRecord(ctx, l, epoch, from+int32(i))
		return err
	})
	return all, err
}

func (j *journal) readRecord(ctx context.Context, l *link, epoch, n int32) (written, error) {
	path := recordPath(j.root.log(epoch), n)
	found, err := do(ctx, l, get(path))
	if err != nil {
		return written{}, err
	}
	r, err := parseRecord(found.data)
	if err != nil {
		return written{}, fmt.Errorf("record %s: %w", path, err)
	}
	return written{n: n, zxid: found.stat.Czxid, record: r, size: len(found.data)}, nil
}

// recordNames lists the records of a log in order.
func (j *journal) recordNames(ctx context.Context, l *link, epoch int32) ([]int32, error) {
	log := j.root.log(epoch)
	names, err := children(ctx, l, log)
	if err != nil {
		return nil, err
	}
	numbers := make([]int32, 0, len(names))
	for _, name := range names {
		n, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			j.report(log+"/"+name, "a node in the log is not a record")
			continue
		}
		numbers = append(numbers, int32(n))
	}
	slices.Sort(numbers)
	return numbers, nil
}

// eachPart reads the ends in the records of a log before the one at end, a part at a time.
func (j *journal) eachPart(
	ctx context.Context, l *link, epoch, end int32, use func([]folded) error,
) error {
	numbers, err := j.recordNames(ctx, l, epoch)
	if err != nil {
		return err
	}
	before, _ := slices.BinarySearch(numbers, end)
	for some := range slices.Chunk(numbers[:before], foldRecords) {
		records, err := j.readEnds(ctx, l, epoch, some)
		if err != nil {
			return err
		}
		if err := use(records); err != nil {
			return err
		}
	}
	return nil
}

// readEnds reads the ends in records, without those that are gone.
func (j *journal) readEnds(
	ctx context.Context, l *link, epoch int32, numbers []int32,
) ([]folded, error) {
	const gone = -1
	records := make([]folded, len(numbers))
	err := inParallel(len(numbers), func(i int) error {
		path := recordPath(j.root.log(epoch), numbers[i])
		found, err := do(ctx, l, get(path))
		if errors.Is(err, zk.ErrNoNode) {
			records[i].n = gone
			return nil
		}
		if err != nil {
			return err
		}
		records[i] = folded{
			n: numbers[i], at: found.stat.Ctime, zxid: found.stat.Czxid, size: len(found.data),
		}
		r, err := parseRecord(found.data)
		if err != nil {
			j.report(path, "a record cannot be read and is passed over", "error", err)
			return nil
		}
		records[i].ends = r.ends()
		return nil
	})
	return slices.DeleteFunc(records, func(r folded) bool { return r.n == gone }), err
}

// oldLogs returns the logs before epoch that are not retired yet.
func (j *journal) oldLogs(ctx context.Context, l *link, epoch int32) (old []int32, err error) {
	names, err := children(ctx, l, j.root.logs())
	for _, name := range names {
		if n, bad := strconv.ParseInt(name, 10, 32); bad == nil && int32(n) < epoch {
			old = append(old, int32(n))
		}
	}
	return old, err
}
