package etcd

import (
	"context"
	"log/slog"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// compactInterval is how often the embedded store forgets history, at least. Every entry is a
	// key of its own, so history is all that grows.
	compactInterval = 5 * time.Second

	// compactPace is how many bytes of the data file etcd compacts in a second, on a slow disk.
	// etcd walks through all that it stores for each compaction, and answers before that: one
	// that is asked for earlier waits in a line that would never end.
	compactPace = 32 << 20

	// keepHistory is for how long history is kept for a feed that resumes, while that is no more
	// than maxResumed revisions and no more than historyUpTo percent of the quota is in use.
	keepHistory = time.Minute
	historyUpTo = 75

	// keepForReads is for how long history is kept in any case: for a list that is being read, and
	// for a call that reads what its attempts wrote.
	keepForReads = 15 * time.Second

	// keptRevisions are never compacted. A replica that starts after a quiet time finds in them
	// what happened last.
	keptRevisions = 1000
)

// history is when the embedded store was at which revision, since it was started.
type history struct {
	marks []moment
	cut   int64 // everything up to this revision may be forgotten
}

type moment struct {
	at       time.Time
	revision int64
}

// advance notes a moment, and returns up to which revision everything may be forgotten. full
// says that history takes the space of entries.
func (h *history) advance(now moment, full bool) int64 {
	h.marks = append(h.marks, now)
	for len(h.marks) > 1 && !h.marks[0].kept(now, full) {
		h.cut = h.marks[0].revision
		h.marks = h.marks[1:]
	}
	return min(h.cut, now.revision-keptRevisions)
}

// kept reports whether history is kept from m on.
func (m moment) kept(now moment, full bool) bool {
	age := now.at.Sub(m.at)
	return age < keepForReads || age < keepHistory && !full && now.revision-m.revision <= maxResumed
}

// compactAll compacts until the member is closed.
func (m *member) compactAll(log *slog.Logger) {
	var asked time.Time
	m.each(compactInterval, func() {
		upTo, err := m.forgettable(time.Now())
		if err == nil && upTo > 0 && time.Since(asked) >= m.size().compaction() {
			asked = time.Now()
			err = m.compact(upTo)
		}
		if err != nil && m.ctx.Err() == nil {
			log.Warn("the embedded store could not be compacted", "error", err)
		}
	})
}

// compaction returns how long a compaction of the store takes, at most.
func (s Size) compaction() time.Duration {
	return time.Duration(s.Used) * time.Second / compactPace
}

// forgettable returns up to which revision everything may be forgotten now; 0 or less is nothing.
func (m *member) forgettable(now time.Time) (int64, error) {
	ctx, cancel := context.WithTimeout(m.ctx, operationTimeout)
	defer cancel()
	resp, err := m.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return 0, err
	}
	size := m.size()
	full := size.Used > size.Quota/100*historyUpTo
	return m.history.advance(moment{now, resp.Header.Revision}, full), nil
}

func (m *member) compact(revision int64) error {
	ctx, cancel := context.WithTimeout(m.ctx, operationTimeout)
	defer cancel()
	_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
	if isCompacted(err) {
		return nil // nothing was written since
	}
	return err
}
