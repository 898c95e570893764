package row

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// marks know when requests were sent whose events are on their way.
type marks struct {
	start time.Time
	// sent is when the acquire and the release of a cycle were sent, counted from start. Cycles
	// take their places in turn, minutes after those whose places they take.
	sent [1 << 16][2]atomic.Int64

	mu    sync.Mutex
	told  [streamTenants]*load.Histogram
	total *load.Histogram
}

func newMarks() *marks {
	m := &marks{start: time.Now(), total: load.NewHistogram()}
	m.reset()
	return m
}

const marked = "told:"

func markedName(cycle int) string { return marked + strconv.Itoa(cycle) }

func (m *marks) of(cycle string) *[2]atomic.Int64 {
	n, err := strconv.Atoi(cycle)
	if err != nil {
		return nil
	}
	return &m.sent[n%len(m.sent)]
}

// reset begins to count anew.
func (m *marks) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.told {
		m.told[i] = load.NewHistogram()
	}
}

// all returns what readers were told since the count began.
func (m *marks) all() *load.Histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := load.NewHistogram()
	for _, of := range m.told {
		all.Merge(of)
	}
	return all
}

// read takes a message that a reader of a tenant was told.
func (m *marks) read(tenant int, data []byte) {
	at := time.Since(m.start)
	_, rest, ok := bytes.Cut(data, []byte(`"lock":"`+marked))
	if !ok {
		return
	}
	cycle, _, _ := bytes.Cut(rest, []byte(`"`))
	what := 0
	if bytes.HasPrefix(data, []byte(`{"type":"lock.released"`)) {
		what = 1
	}
	sent := m.of(string(cycle))
	if sent == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[tenant].Record(at - time.Duration(sent[what].Load()))
}

func (m *marks) timed(w load.Worker) load.Worker { return &markedWorker{Worker: w, marks: m} }

// markedWorker has it noted when its requests are sent.
type markedWorker struct {
	load.Worker
	marks *marks
	sent  *[2]atomic.Int64
}

// Acquire implements [load.Worker].
func (w *markedWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.sent = w.marks.of(name[len(marked):])
	w.sent[0].Store(int64(time.Since(w.marks.start)))
	return w.Worker.Acquire(ctx, name)
}

// Release implements [load.Worker].
func (w *markedWorker) Release(ctx context.Context) error {
	w.sent[1].Store(int64(time.Since(w.marks.start)))
	return w.Worker.Release(ctx)
}

// readers are streams that are read.
type readers struct {
	streams []*side.Stream
	reading sync.WaitGroup
	closing atomic.Bool
	lost    atomic.Int64
}

// follow opens a stream and reads it until close.
func (r *readers) follow(ctx context.Context, f side.Fencepost, i int, path string, told func([]byte)) error {
	s, err := f.Follow(ctx, i, path)
	if err != nil {
		return err
	}
	r.streams = append(r.streams, s)
	r.reading.Go(func() {
		if err := s.Read(told); err != nil && !r.closing.Load() {
			r.lost.Add(1)
		}
	})
	return nil
}

// close ends the streams, and fails if one had ended already.
func (r *readers) close() error {
	r.closing.Store(true)
	for _, s := range r.streams {
		s.Close()
	}
	r.reading.Wait()
	if n := r.lost.Load(); n > 0 {
		return fmt.Errorf("%d of %d streams ended early", n, len(r.streams))
	}
	return nil
}

// open opens all streams of the row.
func (s *streamBench) open(ctx context.Context) (*readers, error) {
	r := &readers{}
	for i := range streamTenants * streamsOfTenant {
		tenant := i % streamTenants
		told := func(data []byte) { s.marks.read(tenant, data) }
		if err := r.follow(ctx, s.tenants[tenant], i, "/events?types=lock.acquired,lock.released", told); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}
