package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// historyInterval is how often the embedded store is compacted, up to its revision one interval
	// before. Lists in progress, and calls that read what their attempts wrote, need less history.
	historyInterval = 15 * time.Second

	// keptRevisions are never compacted. A replica that starts after a quiet time finds the last
	// changes in them.
	keptRevisions = 1000

	// compactPace is how many bytes of the data file etcd compacts in a second on a slow disk. etcd
	// walks through the whole file, and answers before it is done, so compactions that come sooner
	// queue up.
	compactPace = 32 << 20

	// forEntries is the percentage of the quota for new entries. Renewals and releases write to the
	// rest. Otherwise etcd's own alarm would go off and reject their records.
	forEntries = 90

	// costOf is the percentage of an entry's bytes that the file needs for it, and keyRoom bounds
	// the bytes of one of its keys.
	costOf  = 150
	keyRoom = 512

	// tidyInterval is the time between two checks of the alarm, and tidyPause the least time between
	// two defragmentations, which stop all calls.
	tidyInterval = 5 * time.Second
	tidyPause    = time.Minute
)

// compactAll compacts until the member is closed.
func (m *member) compactAll(log *slog.Logger) {
	var upTo int64
	var asked time.Time
	m.each(historyInterval, func() {
		newest, err := m.newest()
		pause := time.Duration(m.size().Used) * time.Second / compactPace
		if before := min(upTo, newest-keptRevisions); before > 0 && time.Since(asked) >= pause {
			asked = time.Now()
			err = errors.Join(err, m.compact(before))
		}
		if err != nil && m.ctx.Err() == nil {
			log.Warn("the embedded store could not be compacted", "error", err)
		}
		upTo = newest
	})
}

func (m *member) newest() (int64, error) {
	ctx, cancel := context.WithTimeout(m.ctx, operationTimeout)
	defer cancel()
	resp, err := m.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	return resp.GetHeader().GetRevision(), err
}

func (m *member) compact(revision int64) error {
	ctx, cancel := context.WithTimeout(m.ctx, operationTimeout)
	defer cancel()
	_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
	if isCompacted(err) {
		return nil // no write since
	}
	return err
}

// Size shows how full the embedded store is.
type Size struct {
	Used  int64 // bytes of its file in use, as far as they were flushed
	Quota int64 // largest size of the file in bytes
}

func (m *member) size() Size {
	return Size{Used: m.server.Backend().SizeInUse(), Quota: m.server.Cfg.QuotaBackendBytes}
}

// room decides whether a new entry fits.
type room struct {
	mu   sync.Mutex
	used int64 // as last reported by the store: it counts what was flushed

	// since counts what was admitted after used last changed, and before what was admitted in the
	// interval before that. The latter may have been flushed too late to be counted.
	since, before int64
}

// admit reports whether that many bytes fit, and counts them.
func (r *room) admit(bytes int, size Size) bool {
	cost := int64(bytes) * costOf / 100
	r.mu.Lock()
	defer r.mu.Unlock()
	if size.Used != r.used {
		r.used, r.since, r.before = size.Used, 0, r.since
	}
	if size.Used+r.before+r.since+cost > size.Quota/100*forEntries {
		return false
	}
	r.since += cost
	return true
}

// attend frees pages if etcd's alarm went off. It does nothing if the data needs the quota.
func (m *member) attend(log *slog.Logger) {
	size := m.size()
	if !m.alarmed() || size.Used > size.Quota/100*forEntries || !m.copying.TryLock() {
		return // defragmenting would wait for the end of a backup, and all calls with it
	}
	defer m.copying.Unlock()
	if time.Since(m.tidied) < tidyPause {
		return
	}
	m.tidied = time.Now()
	if err := m.tidy(log); err != nil && m.ctx.Err() == nil {
		log.Error("the embedded store is full and could not be tidied", "error", err)
	}
}

func (m *member) alarmed() bool {
	for _, a := range m.server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// tidy defragments, and clears the alarm once the file is well below the quota.
func (m *member) tidy(log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(m.ctx, startTimeout)
	defer cancel()
	if err := m.server.Defragment(); err != nil {
		return err
	}
	size, quota := m.server.Backend().Size(), m.server.Cfg.QuotaBackendBytes
	if size > quota/100*forEntries {
		return fmt.Errorf("its data needs %d of %d bytes: raise the quota", size, quota)
	}
	_, err := m.server.Alarm(ctx, &pb.AlarmRequest{
		MemberID: uint64(m.server.MemberID()),
		Action:   pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE,
	})
	if err == nil {
		log.Warn("the embedded store was full; it was tidied and accepts entries again", "bytes", size)
	}
	return err
}
