package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// archive keeps the ends that are no longer in the log: old records are folded into nodes below
// ended/, which are deleted later.
type archive struct {
	*journal
	chores *connector
	feed   *feed
}

// endedPath returns the path of a new node of ends; its name has the time, for people.
func (a *archive) endedPath() string {
	return fmt.Sprintf("%s/%013d-%s", a.root.ended(), time.Now().UnixMilli(), rand.Text()[:8])
}

// recallMoved reports what was moved below ended/.
func (a *archive) recallMoved(ctx context.Context, l *link, f *follower, v view) error {
	names, err := children(ctx, l, a.root.ended())
	if err != nil {
		return err
	}
	const together = 4 // each has up to foldBytes
	for some := range slices.Chunk(names, together) {
		read := make([][]end, len(some))
		err := inParallel(len(some), func(i int) (err error) {
			read[i], err = a.readMoved(ctx, l, a.root.ended()+"/"+some[i])
			return err
		})
		if err != nil {
			return err
		}
		for _, ends := range read {
			if err := f.recall(v, ends, a.trust.Floor(), false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *archive) readMoved(ctx context.Context, l *link, path string) (ends []end, err error) {
	n, err := do(ctx, l, get(path))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	if bad := json.Unmarshal(n.data, &ends); bad != nil {
		a.report(path, "a record of ended entries cannot be read", "error", bad)
	}
	return ends, nil
}

// forget deletes reasons that were moved long ago, and logs that are no longer in use. It
// compares a node's creation time with a write of now, both by the server's clock, plus ahead.
func (a *archive) forget(ctx context.Context, ahead time.Duration) error {
	l, err := a.chores.get(ctx)
	if err != nil {
		return err
	}
	now, err := a.barrierOn(ctx, l)
	if err != nil {
		return err
	}
	before := time.UnixMilli(now.Mtime).Add(ahead - endedRetention).UnixMilli()
	if err := a.forgetEnds(ctx, l, before); err != nil {
		return err
	}
	old, err := a.oldLogs(ctx, l, a.epoch.Load())
	for _, epoch := range old {
		if err == nil {
			err = a.retire(ctx, l, epoch)
		}
	}
	return err
}

// forgetEnds deletes reasons that were moved before the time, in ms.
func (a *archive) forgetEnds(ctx context.Context, l *link, before int64) error {
	names, err := children(ctx, l, a.root.ended())
	if err != nil {
		return err
	}
	// A random order divides the work among replicas.
	mathrand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if err := a.forgetOne(ctx, l, a.root.ended()+"/"+name, before); err != nil {
			return err
		}
	}
	return nil
}

// forgetOne deletes a node of reasons that was made before the time, and the marks of the keys in
// it.
func (a *archive) forgetOne(ctx context.Context, l *link, node string, before int64) error {
	stat, err := do(ctx, l, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, err := c.Exists(node)
		if err == nil && !there {
			err = zk.ErrNoNode
		}
		return stat, err
	})
	if err == nil && stat.Ctime < before {
		var ends []end
		if ends, err = a.readMoved(ctx, l, node); err == nil {
			err = a.forgetMarks(ctx, l, ends, before)
		}
		if err == nil {
			err = a.deleteAll(ctx, l, []string{node})
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// forgetMarks deletes the marks of keys whose entries ended so, unless the key is in use again,
// for example after a withdrawal.
func (a *archive) forgetMarks(ctx context.Context, l *link, ends []end, before int64) error {
	return inParallel(len(ends), func(i int) error {
		if !ends[i].Keyed {
			return nil
		}
		path := a.root.mark(ends[i].Tenant, ends[i].ID)
		n, err := do(ctx, l, get(path))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		var m mark
		if bad := json.Unmarshal(n.data, &m); bad == nil && (m.Reason == "" || n.stat.Mtime >= before) {
			return nil
		}
		_, err = do(ctx, l, remove(path, n.stat.Version))
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
			return nil
		}
		return err
	})
}

// retire moves the ends in an old log, and deletes the log.
func (a *archive) retire(ctx context.Context, l *link, epoch int32) error {
	all := logRecords{}
	err := a.eachPart(ctx, l, epoch, math.MaxInt32, func(records []folded) error {
		for i := range records {
			records[i].at = 0 // it is not in use, so nothing is kept
		}
		all.records = append(all.records, records...)
		for len(all.records) > 0 {
			part := all.part(time.Now())
			if err := a.move(ctx, epoch, part); err != nil {
				return err
			}
			all.records = all.records[len(part):]
		}
		return nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil // another replica does it
	}
	if err != nil {
		return err
	}
	names, err := children(ctx, l, a.root.log(epoch)) // names that are no records
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for i := range names {
		names[i] = a.root.log(epoch) + "/" + names[i]
	}
	if err != nil {
		return err
	}
	return a.deleteAll(ctx, l, append(names, a.root.log(epoch)))
}

// deleteAll deletes nodes one by one.
func (a *archive) deleteAll(ctx context.Context, l *link, paths []string) error {
	for _, path := range paths {
		_, err := do(ctx, l, remove(path, -1))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
