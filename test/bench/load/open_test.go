package load_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// service answers at once, but for one grant.
type service struct {
	grants atomic.Int64
	odd    int64
	answer func() error
}

func (s *service) Acquire(context.Context, string) (int64, error) {
	n := s.grants.Add(1)
	if n == s.odd {
		return n, s.answer()
	}
	return n, nil
}

func (s *service) Release(context.Context) error { return nil }

func TestOneFailedRequestFailsTheRun(t *testing.T) {
	broken := errors.New("broken")
	ws := []load.Worker{&service{odd: 50, answer: func() error { return broken }}}
	_, closed := load.Closed{
		Workers: ws, Duration: time.Minute, Name: func(int, int) string { return "one" },
	}.Run(t.Context())
	ws = []load.Worker{&service{odd: 50, answer: func() error { return broken }}}
	_, open := load.Open{
		Workers: ws, Rate: 1000, Duration: time.Minute, Name: strconv.Itoa,
	}.Run(t.Context())
	if !errors.Is(closed, broken) || !errors.Is(open, broken) {
		t.Errorf("closed: %v, open: %v, want %v", closed, open, broken)
	}
}

func TestOpenLoadCountsFromTheIntendedStart(t *testing.T) {
	const stall = 100 * time.Millisecond
	w := &service{odd: 100, answer: func() error { <-time.After(stall); return nil }}
	r, err := load.Open{
		Workers: []load.Worker{w}, Rate: 1000, Warmup: 50 * time.Millisecond,
		Duration: 250 * time.Millisecond, Name: strconv.Itoa,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Cycles != 250 || r.Acquire.Percentile(75) < stall/4 {
		t.Errorf("%d cycles, p75 %v: the stall is hidden", r.Cycles, r.Acquire.Percentile(75))
	}
}
