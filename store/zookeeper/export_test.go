package zookeeper

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/storetest"
)

// ReadQueue is what Queue does when the feed is late.
func (s *Store) ReadQueue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	return s.readQueue(ctx, r)
}

// Admit reads the closures of a tenant that has none, as a join does.
func (s *Store) Admit(ctx context.Context, tenant string) error {
	_, err := s.joiner.admissions.read(ctx, tenant, 0, s.reader.trust.Floor())
	return err
}

// Small returns the store's small records with their attempts.
func (s *Store) Small() *engine.Records { return s.small }

// Rotate is what the upkeep does long before the names of records overflow.
func (s *Store) Rotate(ctx context.Context) error { return s.reader.rotate(ctx) }

// Forget is what the upkeep does now and then, as if so much more time had passed.
func (s *Store) Forget(ctx context.Context, ahead time.Duration) error {
	return s.archive.forget(ctx, ahead)
}

// ForgetBefore forgets the reasons that were moved before the time, in ms, by the server's
// clock.
func (s *Store) ForgetBefore(ctx context.Context, before int64) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	return s.archive.forgetEnds(ctx, l, before)
}

// Fold is what the upkeep does again and again, as if so much more time had passed.
func (s *Store) Fold(ctx context.Context, ahead time.Duration) error {
	return s.archive.fold(ctx, ahead)
}

// FoldReadBy folds a part of the records that another replica's feed has read, however new
// they are, and returns how many.
func (s *Store) FoldReadBy(ctx context.Context, other *Store) (int, error) {
	if err := s.archive.loadRecords(ctx); err != nil {
		return 0, err
	}
	part, epoch, _ := s.feed.foldable(time.Hour)
	read := other.feed.position()
	part = slices.DeleteFunc(part, func(r folded) bool { return r.n >= read })
	if len(part) == 0 {
		return 0, nil
	}
	err := s.archive.move(
		ctx, epoch, part, &zk.CheckVersionRequest{Path: s.reader.root.epoch(), Version: epoch},
	)
	if err == nil {
		_ = s.feed.forgetFolded(part[len(part)-1].n, nil)
	}
	return len(part), err
}

// RecallAfterLoss makes a feed lose a view just before the ends from before it are reported.
func RecallAfterLoss(to store.Watcher) error {
	f := &follower{f: to, view: view{count: 1}}
	f.lose(errEnded)
	return f.recall(f.view, nil, 0, true)
}

// Ahead returns how many records this replica's feed has that the other's has not.
func (s *Store) Ahead(of *Store) int32 { return s.feed.position() - of.feed.position() }

// HoldFeed breaks the connection of the feed and lets it have no other until release is
// called.
func (s *Store) HoldFeed() (release func()) {
	c := s.reader.reads
	c.mu.Lock()
	if c.current != nil {
		c.current.fail(errEnded)
	}
	return c.mu.Unlock
}

// HoldCalls lets nothing be written until release is called.
func (s *Store) HoldCalls() (release func()) {
	s.calls.mu.Lock()
	return s.calls.mu.Unlock
}

// PendingWrites is how many writes wait for that.
func (s *Store) PendingWrites() int { return s.commits.Pending().Writes }

// Learn has the upkeep know which log is in use, as it may before the feed follows that.
func (s *Store) Learn(epoch int32) { s.reader.epoch.Store(epoch) }

// BeginBehind has a feed begin after something happened that came when it had read what the
// store remembers about itself.
func (s *Store) BeginBehind(ctx context.Context, happens func()) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	if err := s.meta.Reread(ctx); err != nil {
		return err
	}
	happens()
	return newFeed(s).start(ctx, l)
}

// Follows reports whether the feed follows the log.
func (s *Store) Follows(epoch int32) bool {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.current && s.feed.epoch == epoch
}

// CallsThrough returns the server that the connection for calls is to.
func (s *Store) CallsThrough(ctx context.Context) string {
	l, err := s.calls.get(ctx)
	if err != nil {
		return ""
	}
	return l.server
}

// LearnFloor has the store take over a greater floor, as from what it reads.
func (s *Store) LearnFloor(ctx context.Context, floor uint64) error {
	rise := func(context.Context) (store.Records, error) {
		return store.Records{Position: s.reader.trust.Sent(), Floor: floor, Form: store.Form}, nil
	}
	_, err := s.reader.trust.Reread(ctx, 0, rise)
	return err
}

// SetForm records another form of the stored data, as another version does.
func (s *Store) SetForm(ctx context.Context, form int) error {
	was, err := s.driver.Look(ctx, engine.MetaKey(), true)
	if err != nil {
		return err
	}
	_, err = s.driver.Commit(ctx, engine.Txn{
		If:  []engine.If{{Key: engine.MetaKey(), Was: was}},
		Put: []engine.Put{{Key: engine.MetaKey(), Value: storetest.WithForm(was.Data, form)}},
	})
	return err
}

// Asking reports whether a request is under way on the connection for calls.
func (s *Store) Asking() bool {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return s.calls.current != nil && len(s.calls.current.slots) > 0
}

// EndLife is what others do when they have seen that version of the life of this
// replica's bound records for long.
func (s *Store) EndLife(ctx context.Context, version int32) error {
	l, err := s.calls.get(ctx)
	if err != nil {
		return err
	}
	ids, err := children(ctx, l, s.reader.root.lives())
	if err != nil {
		return err
	}
	return s.driver.endLife(ctx, ids[0], version)
}

// Heartbeats returns the version of that life.
func (s *Store) Heartbeats(ctx context.Context) (int32, error) {
	l, err := s.calls.get(ctx)
	if err != nil {
		return 0, err
	}
	ids, err := children(ctx, l, s.reader.root.lives())
	if err != nil {
		return 0, err
	}
	n, err := onLink(ctx, s.calls, get(s.reader.root.life(ids[0])))
	if err != nil {
		return 0, err
	}
	return n.stat.Version, nil
}

// ReadAnew takes over meta. read is called when it has been read, but not taken over.
func (s *Store) ReadAnew(ctx context.Context, read func()) error {
	_, err := s.reader.trust.Reread(ctx, 0, func(ctx context.Context) (store.Records, error) {
		r, err := s.meta.Ask(ctx)
		read()
		return r, err
	})
	return err
}

// Expire does what a replica does when the lease of an entry is over after it has seen one
// version, or none.
func (s *Store) Expire(ctx context.Context, e *lock.Entry, leased bool) {
	x := &expirer{leases: s.leases, reader: s.reader, calls: s.calls, remover: s.remover}
	l := &lease{entry: e, version: noLease}
	if leased {
		l.version = 0
	}
	x.expire(ctx, l, l.version)
}

// FoldSize returns what moving ends is taken to add to a request, and what their node has.
func FoldSize(ends []store.End) (taken, has int) {
	r := folded{}
	for _, e := range ends {
		r.ends = append(r.ends, end{e, true})
	}
	return sizeOf(r), len(store.Encode(r.ends))
}

// Removal is an attempt to remove an entry, and the question whether that has removed it, when
// there was no answer.
func (s *Store) Removal(
	e *lock.Entry, why lock.Reason,
) (attempt, confirm func(context.Context) error) {
	r := s.remover.newRemoval(e, s.remover.hasLease(e), anyVersion, why)
	by := &removing{remover: s.remover, removal: r, unknown: true}
	return func(ctx context.Context) error { return s.remover.attempt(ctx, r).err },
		func(ctx context.Context) error {
			did, err := by.Did(ctx)
			if err == nil && !did {
				err = store.Lost("")
			}
			return err
		}
}

// Sweep returns whether the life of a replica that does not renew it lasts, each time that another
// one has looked after it first saw it. It begins again if the store's own sweeper could end it.
func (s *Store) Sweep(ctx context.Context, after ...time.Duration) (lasts []bool, err error) {
	for begun := time.Now(); err == nil; begun = time.Now() {
		if lasts, err = s.sweepAfter(ctx, after); time.Since(begun) < store.RecordLife {
			return lasts, err
		}
	}
	return nil, err
}

func (s *Store) sweepAfter(ctx context.Context, after []time.Duration) (lasts []bool, err error) {
	var now time.Duration
	w := &sweeper{driver: s.driver, now: func() time.Duration { return now }}
	id, err := s.driver.BeginLife(ctx)
	for _, now = range after {
		var l *link
		if l, err = s.chores.get(ctx); err == nil {
			err = w.sweep(ctx)
		}
		if err != nil {
			return nil, err
		}
		all, err := children(ctx, l, s.reader.root.lives())
		if err != nil {
			return nil, err
		}
		lasts = append(lasts, slices.Contains(all, id))
	}
	return lasts, err
}

// NarrowBehind is an attempt of Narrow, and has something happen before its write is sent.
func (s *Store) NarrowBehind(
	ctx context.Context, e *lock.Entry, kept []lock.Claim, happens func(),
) error {
	known := s.meta.check()
	_, joined, _ := s.feed.placed(keyOf(e))
	happens()
	return s.commits.do(ctx, s.narrowWrite(e, e.Narrowed(kept), joined, known)).err
}

// Reread reads the store's own record.
func (s *Store) Reread(ctx context.Context) error { return s.reread(ctx, 0) }
