package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

const (
	upkeepInterval = time.Second

	// endedRetention is how long reasons stay in the store. The contract says 10
	// minutes; the rest allows for clocks that differ between replicas.
	endedRetention = 11 * time.Minute
	forgetInterval = 30 * time.Second

	// The log keeps its last keepRecords records, for followers that are behind;
	// older ones go foldRecords at a time, and what they say of ends moves to a
	// node below ended/ in the same transaction.
	keepRecords = 2000
	foldRecords = 500

	// rotateAfter records another log is begun: the count of children that came
	// and went would overflow at twice as many.
	rotateAfter = 1 << 29
)

// upkeep folds old records, forgets old reasons and mends what somebody deleted
// until the store is closed. All replicas do it; what they do is idempotent.
func (s *Store) upkeep() {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	forgot := time.Now()
	for {
		select {
		case <-s.closing.Done():
			return
		case why := <-s.mending:
			s.attend("mend the log", func(ctx context.Context) error { return s.mendLog(ctx, why) })
			_ = store.Pause(s.closing, firstPause) // at most so often; the loop sees whether it is over
		case <-tick.C:
			s.attend("look after the store's own nodes", s.keepNodes)
			s.attend("fold the log", s.fold)
			if time.Since(forgot) >= forgetInterval {
				forgot = time.Now()
				s.attend("forget old reasons", func(ctx context.Context) error {
					return s.forget(ctx, forgot.Add(-endedRetention))
				})
			}
		}
	}
}

// attend does a part of the upkeep. That ZooKeeper does not answer is told by the
// connections, and need not be told again every few seconds.
func (s *Store) attend(what string, work func(context.Context) error) {
	ctx, cancel := context.WithTimeout(s.closing, operationTimeout)
	defer cancel()
	err := work(ctx)
	switch {
	case err == nil, s.closing.Err() != nil:
	case answered(err), errors.Is(err, errNoChroot):
		s.log.Warn("upkeep failed and is tried again", "what", what, "error", err)
	default:
		s.log.Debug("upkeep could not be done and is tried again", "what", what, "error", err)
	}
}

// fold moves the ends of the oldest records out of the log and deletes these.
func (s *Store) fold(ctx context.Context) error {
	for {
		records, epoch, last := s.feed.foldable(keepRecords + rand.N(foldRecords))
		if last >= rotateAfter {
			return s.rotate(ctx)
		}
		if len(records) == 0 {
			return nil
		}
		ops := []any{&zk.CheckVersionRequest{Path: s.root.epoch(), Version: epoch}}
		for _, r := range records {
			ops = append(ops, &zk.DeleteRequest{Path: recordPath(s.root.log(epoch), r.n), Version: -1})
		}
		for ends := range slices.Chunk(endsOf(records), foldRecords*4) {
			ops = append(ops, s.create(s.endedPath(), store.Encode(ends)))
		}
		_, err := onLink(ctx, s.reads, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode): // another replica was faster
			s.feed.forgetFolded(records[len(records)-1].n)
		case errors.Is(err, zk.ErrBadVersion):
			return nil // the log was rotated
		default:
			return err
		}
	}
}

func endsOf(records []folded) []store.End {
	var ends []store.End
	for _, r := range records {
		ends = append(ends, r.ends...)
	}
	return ends
}

// foldable returns the oldest records if there are enough beyond keep.
func (f *feed) foldable(keep int) (records []folded, epoch, last int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.current || len(f.folded) < keep+foldRecords {
		return nil, f.epoch, f.next
	}
	return slices.Clone(f.folded[:foldRecords]), f.epoch, f.next
}

func (f *feed) forgetFolded(upTo int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := 0
	for i < len(f.folded) && f.folded[i].n <= upTo {
		i++
	}
	f.folded = slices.Clone(f.folded[i:])
	// They came roughly in order, and a view leaves out what is left. One from the
	// future, by a clock that is wrong, must not keep those behind it.
	oldest, newest := time.Now().Add(-endedRetention).UnixMilli(), time.Now().Add(endedRetention).UnixMilli()
	gone := 0
	for gone < len(f.ended) && (f.ended[gone].At < oldest || f.ended[gone].At > newest) {
		gone++
	}
	f.ended = f.ended[gone:]
}

// listEnded reads what is remembered of ends: in the records that the log still
// has, and those before it, and then in the nodes to which those of older ones were
// moved. Ends that are moved meanwhile are seen twice and kept once.
func (s *Store) listEnded(ctx context.Context, l *link, snap *snapshot) ([]store.End, []folded, error) {
	records, err := s.listRecords(ctx, l, snap.epoch, snap.next)
	if err != nil {
		return nil, nil, err
	}
	ends := endsOf(records)
	old, err := s.oldLogs(ctx, l, snap.epoch)
	for _, epoch := range old {
		if err != nil {
			break
		}
		var more []folded
		if more, err = s.listRecords(ctx, l, epoch, math.MaxInt32); errors.Is(err, zk.ErrNoNode) {
			err = nil // retired meanwhile
		}
		ends = append(ends, endsOf(more)...)
	}
	if err != nil {
		return nil, nil, err
	}
	moved, err := s.listFolded(ctx, l)
	return unique(append(moved, ends...)), records, err
}

// oldLogs returns the logs before epoch that are not retired yet.
func (s *Store) oldLogs(ctx context.Context, l *link, epoch int32) (old []int32, err error) {
	names, err := children(ctx, l, s.root.logs())
	for _, name := range names {
		if n, bad := strconv.ParseInt(name, 10, 32); bad == nil && int32(n) < epoch {
			old = append(old, int32(n))
		}
	}
	return old, err
}

// listRecords reads what the records of a log before the one at end say of ends.
func (s *Store) listRecords(ctx context.Context, l *link, epoch, end int32) ([]folded, error) {
	log := s.root.log(epoch)
	names, err := children(ctx, l, log)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	records := make([]folded, len(names))
	err = inParallel(len(names), func(i int) error {
		n, err := strconv.ParseInt(names[i], 10, 32)
		if err != nil {
			s.report(log+"/"+names[i], "a node in the log is not a record")
			records[i] = folded{n: -1}
			return nil
		}
		w, err := s.readRecord(ctx, l, epoch, int32(n))
		switch {
		case errors.Is(err, errDamaged):
			s.report(recordPath(log, int32(n)), "a record cannot be read and is passed over", "error", err)
			records[i] = folded{n: int32(n)}
		case err == nil && w.n < end:
			records[i] = folded{w.n, w.record.ends()}
		case err == nil, errors.Is(err, zk.ErrNoNode):
			records[i] = folded{n: -1}
		default:
			return err
		}
		return nil
	})
	return slices.DeleteFunc(records, func(r folded) bool { return r.n < 0 }), err
}

func (s *Store) listFolded(ctx context.Context, l *link) ([]store.End, error) {
	names, err := children(ctx, l, s.root.ended())
	if err != nil {
		return nil, err
	}
	all := make([][]store.End, len(names))
	err = inParallel(len(names), func(i int) error {
		path := s.root.ended() + "/" + names[i]
		n, err := do(ctx, l, get(path))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			if bad := json.Unmarshal(n.data, &all[i]); bad != nil {
				s.report(path, "a record of ended entries cannot be read", "error", bad)
			}
		}
		return err
	})
	return slices.Concat(all...), err
}

func unique(ends []store.End) []store.End {
	seen := make(map[store.End]bool, len(ends))
	return slices.DeleteFunc(ends, func(e store.End) bool {
		was := seen[e]
		seen[e] = true
		return was
	})
}

// forget deletes the reasons that were moved before the time, and logs that are
// no longer in use.
func (s *Store) forget(ctx context.Context, before time.Time) error {
	l, err := s.reads.get(ctx)
	if err != nil {
		return err
	}
	names, err := children(ctx, l, s.root.ended())
	if err != nil {
		return err
	}
	oldest := fmt.Sprintf("%013d", before.UnixMilli())
	var paths []string
	for _, name := range names {
		if strings.Compare(name, oldest) < 0 {
			paths = append(paths, s.root.ended()+"/"+name)
		}
	}
	if err := s.deleteAll(ctx, l, paths); err != nil {
		return err
	}
	old, err := s.oldLogs(ctx, l, s.epoch.Load())
	for _, epoch := range old {
		if err == nil {
			err = s.retire(ctx, l, epoch)
		}
	}
	return err
}

// retire moves what an old log says of ends, and deletes it.
func (s *Store) retire(ctx context.Context, l *link, epoch int32) error {
	records, err := s.listRecords(ctx, l, epoch, math.MaxInt32)
	for chunk := range slices.Chunk(records, foldRecords) {
		if err != nil {
			break
		}
		var ops []any
		for _, r := range chunk {
			ops = append(ops, &zk.DeleteRequest{Path: recordPath(s.root.log(epoch), r.n), Version: -1})
		}
		for ends := range slices.Chunk(endsOf(chunk), foldRecords*4) {
			ops = append(ops, s.create(s.endedPath(), store.Encode(ends)))
		}
		_, err = do(ctx, l, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil // another replica does it
	}
	if err != nil {
		return err
	}
	names, err := children(ctx, l, s.root.log(epoch)) // which are no records
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for i := range names {
		names[i] = s.root.log(epoch) + "/" + names[i]
	}
	if err != nil {
		return err
	}
	return s.deleteAll(ctx, l, append(names, s.root.log(epoch)))
}

// deleteAll deletes nodes one by one, which are few or nobody waits for.
func (s *Store) deleteAll(ctx context.Context, l *link, paths []string) error {
	for _, path := range paths {
		_, err := do(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
