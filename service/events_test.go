package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// journal is a log that keeps its lines. Each line waits for gate to be closed, if
// there is one.
type journal struct {
	gate chan struct{}

	mu    sync.Mutex
	lines []string
}

func (*journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler     { return j }
func (j *journal) WithGroup(string) slog.Handler          { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	if j.gate != nil {
		<-j.gate
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	return nil
}

// with returns the lines that contain the text.
func (j *journal) with(text string) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.Contains(l, text) {
			lines = append(lines, l)
		}
	}
	return lines
}

// replicaWithLog is a replica that logs to j. If the test has not opened its gate at the end, the
// replica can still be closed.
func (s *sharedStore) replicaWithLog(t *testing.T, j *journal) *replica {
	t.Helper()
	r := s.replica(t, func(c *service.Config) { c.Logger = slog.New(j) })
	t.Cleanup(j.open)
	return r
}

func (j *journal) open() {
	select {
	case <-j.gate: // it is nil or open
	default:
		if j.gate != nil {
			close(j.gate)
		}
	}
}

// TestLogThatStandsStill: however much there is to log, grants continue while the log is blocked;
// afterwards all lines arrive.
func TestLogThatStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, j := newSharedStore(t), &journal{gate: make(chan struct{})}
		r := s.replicaWithLog(t, j)
		r.hold(want("expires", 0))
		next := r.line(lasting(want("expires", time.Hour)))
		r.hold(as("w1", lasting(want("x", 0))))
		r.start(as("w1", want("x", time.Minute))).fails(lock.Deadlock)
		for _, habit := range [][]string{{"w2", "orders:1", "stock:1"}, {"w3", "stock:2", "orders:2"}} {
			r.hold(as(habit[0], lasting(want(habit[1], 0))))
			r.hold(as(habit[0], lasting(want(habit[2], 0))))
		}
		after(ttl)
		next.holds()
		r.release(r.hold(lasting(want("another", 0))))
		if n := len(j.with("")); n != 0 {
			t.Fatalf("%d lines were logged; the log does not stand still", n)
		}
		expected := service.Totals{Totals: view.Totals{Expired: 1}, Contradicted: 1}
		if got := r.Totals(); got != expected {
			t.Errorf("counted %+v meanwhile, want %+v", got, expected)
		}
		close(j.gate)
		after(time.Second)
		for _, text := range []string{"expired", "deadlock was found", "contradict"} {
			if n := len(j.with(text)); n != 1 {
				t.Errorf("%d lines with %q, want 1, among %q", n, text, j.with(""))
			}
		}
	})
}

// TestMoreEventsThanTheLogTakes: what does not fit is counted and said in one
// line, and the exact counts have all.
func TestMoreEventsThanTheLogTakes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, j := newSharedStore(t), &journal{gate: make(chan struct{})}
		r := s.replicaWithLog(t, j)
		const many = 10_000
		for i := range many {
			if err := s.end(s.occupy(t, fmt.Sprint("orders:", i)), lock.Expired); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Second)
		got := r.Totals()
		if got.Expired != many || got.EventsDropped < many/2 || got.EventsDropped >= many {
			t.Errorf("counted %+v, want %d expired and most of them dropped", got, many)
		}
		close(j.gate)
		after(time.Second)
		if told := uint64(len(j.with("an entry expired"))); told+got.EventsDropped != many {
			t.Errorf("%d lines and %d dropped, want %d in all", told, got.EventsDropped, many)
		}
		said := fmt.Sprint("dropped=", got.EventsDropped)
		lines := j.with("events came too fast")
		if len(lines) != 1 || !strings.HasSuffix(lines[0], said) {
			t.Errorf("said %q, want one line with %s", lines, said)
		}
	})
}

// TestEventsAreToldOnClose: what was not told yet is, before Close returns.
func TestEventsAreToldOnClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, j := newSharedStore(t), &journal{}
		r := s.replicaWithLog(t, j)
		if err := s.end(s.occupy(t, "orders:1"), lock.Expired); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.Close()
		if lines := j.with("an entry expired"); len(lines) != 1 ||
			!strings.Contains(lines[0], "number=102") {
			t.Errorf("told %q, want the one with its number", lines)
		}
	})
}
