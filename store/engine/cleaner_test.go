package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestCleanerRepeats: until it has worked, whatever waits beside it.
func TestCleanerRepeats(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tries, done := map[int]int{}, []int{}
		c := engine.NewCleaner(slog.New(slog.DiscardHandler))
		for n := range 10 {
			c.Add(func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				if tries[n]++; n%2 == 0 && tries[n] < 50 {
					return errors.New("not yet")
				}
				done = append(done, n)
				return nil
			}, time.Second)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		c.Close()
		slices.Sort(done)
		if !slices.Equal(done, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || tries[4] != 50 {
			t.Errorf("done: %v, tries: %v", done, tries)
		}
	})
}

// journal is a log that is read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// TestCleanerGivesUp: when the lease is long over, and when it is closed.
func TestCleanerGivesUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log journal
		c := engine.NewCleaner(slog.New(slog.NewTextHandler(&log, nil)))
		wait := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		c.Add(wait, time.Hour)
		<-time.After(time.Hour)
		if log.String() != "" {
			t.Errorf("it was given up before its lease was over: %s", log.String())
		}
		<-time.After(time.Hour)
		if !strings.Contains(log.String(), "could not be taken back") {
			t.Errorf("after %v: %s", time.Since(began), log.String())
		}
		for range 20_000 {
			c.Add(wait, time.Hour)
		}
		if !strings.Contains(log.String(), "too many") {
			t.Error("what waits has no bound")
		}
		c.Close()
	})
}
