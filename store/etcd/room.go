package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Parts of the embedded store's quota, in percent. New entries may use the first one;
// the rest is for what renewing and releasing write, so that etcd's own alarm, which
// stops both of them for a while, is not reached.
const (
	forEntries = 90
	// costOf is what a byte of an entry costs in the file.
	costOf = 150
	// keyRoom is what one of an entry's keys takes at most, besides its value.
	keyRoom = 512
)

// Defragmenting stops all calls. It is tried again after a while, which doubles as
// long as it does not help.
const (
	attendInterval = 5 * time.Second

	firstTidy   = 10 * time.Second
	longestTidy = 10 * time.Minute
)

// room is what is known of the free space of the embedded store.
type room struct {
	mu      sync.Mutex
	used    int64 // as the store told last: it counts what was flushed
	pending int64 // admitted, and not answered yet
	// What was answered since used changed last, and between that and the change before.
	// The latter may have been flushed too late to be counted.
	answered, before int64

	next time.Time // when the store may be defragmented again
	wait time.Duration
}

// Size is how full the embedded store is.
type Size struct {
	Used  int64 // bytes of its file that are in use, as far as they were flushed
	Quota int64 // bytes that the file may have
}

// Size tells how full the embedded store is; ok is false of a cluster, which tells that itself.
func (c *Conn) Size() (s Size, ok bool) {
	if c.size == nil {
		return Size{}, false
	}
	return c.size(), true
}

func (m *member) size() Size {
	return Size{Used: m.server.Backend().SizeInUse(), Quota: m.server.Cfg.QuotaBackendBytes}
}

// admit reports whether an entry of so many bytes may be written. If so, answered is
// called when its writing has ended.
func (m *member) admit(bytes int) (answered func(), ok bool) {
	cost := int64(bytes) * costOf / 100
	if !m.room.admit(cost, m.server.Backend().SizeInUse(), m.server.Cfg.QuotaBackendBytes) {
		return nil, false
	}
	return func() { m.room.settle(cost) }, true
}

func (r *room) admit(bytes, used, quota int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if used != r.used {
		r.used, r.answered, r.before = used, 0, r.answered
	}
	if used+r.pending+r.answered+r.before+bytes > quota/100*forEntries {
		return false
	}
	r.pending += bytes
	return true
}

// settle says that what was admitted has been written, or will not be.
func (r *room) settle(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending -= bytes
	r.answered += bytes
}

// attend answers the alarm that etcd raises when its quota is reached all the same.
func (r *room) attend(m *member, log *slog.Logger) {
	full := false
	for _, a := range m.server.Alarms() {
		full = full || a.Alarm == pb.AlarmType_NOSPACE
	}
	backend := m.server.Backend()
	if !full {
		r.wait = 0
		return
	}
	if !m.backups.busy.TryLock() {
		return // a backup is being made, for whose end it would wait
	}
	defer m.backups.busy.Unlock()
	if !r.due(time.Now(), backend.SizeInUse(), m.server.Cfg.QuotaBackendBytes) {
		return
	}
	if err := m.makeRoom(log); err != nil && m.ctx.Err() == nil {
		log.Error("the embedded store is full and could not be tidied", "error", err)
	}
}

// due reports whether to defragment a full store now: only free pages can be given
// back, so it is of no use if what is in use alone is too much.
func (r *room) due(now time.Time, used, quota int64) bool {
	if used > quota/100*forEntries || now.Before(r.next) {
		return false
	}
	r.wait = min(max(firstTidy, 2*r.wait), longestTidy)
	r.next = now.Add(r.wait)
	return true
}

// makeRoom defragments and clears the alarm once the file is well below the quota.
func (m *member) makeRoom(log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(m.ctx, startTimeout)
	defer cancel()
	if err := m.server.Defragment(); err != nil {
		return err
	}
	size, quota := m.server.Backend().Size(), m.server.Cfg.QuotaBackendBytes
	if size > quota/100*forEntries {
		return fmt.Errorf("what is in it needs %d of %d bytes: raise the quota", size, quota)
	}
	_, err := m.server.Alarm(ctx, &pb.AlarmRequest{
		MemberID: uint64(m.server.MemberID()), Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE,
	})
	if err == nil {
		log.Warn("the embedded store was full; it was tidied and accepts entries again", "bytes", size)
	}
	return err
}
