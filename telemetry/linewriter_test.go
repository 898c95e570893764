package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/bubble"
)

// sink keeps what is written to it, and counts the calls. While gate is not nil
// a call first receives from it.
type sink struct {
	gate chan struct{}
	err  error

	mu    sync.Mutex
	text  bytes.Buffer
	calls int
}

func (s *sink) Write(p []byte) (int, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(p)
}

func (s *sink) got() (text string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.calls
}

func write(t *testing.T, w *telemetry.LineWriter, line string) {
	t.Helper()
	if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}

func TestLinesArePassedOnTogetherAfter50ms(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out sink
		w := telemetry.NewLineWriter(&out, nil)
		defer w.Close()
		for range 2 { // the second round shows that the goroutine goes on
			before, calls := out.got()
			write(t, w, "a\n")
			<-time.After(49 * time.Millisecond) // of the bubble's clock
			write(t, w, "b\n")
			synctest.Wait()
			if text, _ := out.got(); text != before {
				t.Errorf("written after 49 ms: %q", text)
			}
			<-time.After(2 * time.Millisecond) // of the bubble's clock
			synctest.Wait()
			if text, n := out.got(); text != before+"a\nb\n" || n != calls+1 {
				t.Errorf("after 51 ms: %q in %d calls, want both lines in one", text, n-calls)
			}
		}
	})
}

func TestFullBatchIsPassedOnAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out sink
		w := telemetry.NewLineWriter(&out, nil)
		defer w.Close()
		line := strings.Repeat("x", 1023) + "\n"
		for range 64 {
			write(t, w, line)
		}
		synctest.Wait() // no time passes
		if text, _ := out.got(); len(text) != 64<<10 {
			t.Errorf("%d bytes written, want 64 KiB", len(text))
		}
	})
}

func TestNothingIsLostOnClose(t *testing.T) {
	var out sink
	w := telemetry.NewLineWriter(&out, nil)
	const writers, each = 8, 600 // less than what may be pending, should the writer stand still
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				write(t, w, fmt.Sprintf("%d %d %s\n", i, j, strings.Repeat("x", j%300)))
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkOrder(t, &out, writers, each)
	if _, calls := out.got(); calls > writers*each/10 {
		t.Errorf("%d calls for %d lines: they were not gathered", calls, writers*each)
	}
}

// Lines that are written while Close runs are not lost either, nor overtaken.
func TestCloseAmongWriters(t *testing.T) {
	for range 100 {
		var out sink
		w := telemetry.NewLineWriter(&out, nil)
		const writers, each = 4, 100
		half := make(chan struct{})
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for j := range each {
					if i == 0 && j == each/2 {
						close(half)
					}
					write(t, w, fmt.Sprintf("%d %d\n", i, j))
				}
			})
		}
		<-half
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		checkOrder(t, &out, writers, each)
	}
}

// checkOrder wants every line of every writer once, in the order of its writer.
func checkOrder(t *testing.T, out *sink, writers, each int) {
	t.Helper()
	next := make(map[int]int)
	text, _ := out.got()
	for line := range strings.Lines(text) {
		var i, j int
		if _, err := fmt.Sscanf(line, "%d %d", &i, &j); err != nil || j != next[i] {
			t.Fatalf("line %q, want line %d of writer %d (%v)", line, next[i], i, err)
		}
		next[i]++
	}
	for i := range writers {
		if next[i] != each {
			t.Errorf("%d lines of writer %d, want %d", next[i], i, each)
		}
	}
}

// TestReaderThatStandsStill: no caller waits for the blocked reader. Lost lines are counted, and
// the count is logged when it reads again.
func TestReaderThatStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := sink{gate: make(chan struct{})}
		w := telemetry.NewLineWriter(
			&out, func(l telemetry.Lost) []byte { return fmt.Appendf(nil, "lost %d %v\n", l.Lines, l.Err) },
		)
		line := strings.Repeat("x", 64<<10-1) + "\n"
		const written = 40
		began := time.Now()
		for range written {
			write(t, w, line)
			synctest.Wait() // until the first are on their way
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the writes took %v", d)
		}
		lost := w.Dropped()
		if kept := written - lost; kept < 16 || kept > 18 {
			t.Errorf("%d lines of 64 KiB are kept, want 1 MiB and one on its way", kept)
		}
		close(out.gate)
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text, _ := out.got()
		if n := strings.Count(text, line); n != written-int(lost) {
			t.Errorf("%d lines arrived, want %d", n, written-lost)
		}
		if want := fmt.Sprintf("lost %d <nil>\n", lost); !strings.HasSuffix(text, "x\n"+want) {
			t.Errorf("it ends in %q, want %q", text[len(text)-40:], want)
		}
	})
}

// TestWarningsAndAReaderThatStandsStill: the first waits for a moment, the others
// not at all, until the reader has moved.
func TestWarningsAndAReaderThatStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := sink{gate: make(chan struct{})}
		w := telemetry.NewLineWriter(&out, nil)
		logger := telemetry.NewLogger(w, telemetry.FormatJSON, slog.LevelInfo)
		warn := func(most time.Duration) {
			t.Helper()
			began := time.Now()
			logger.Warn("a warning")
			if d := time.Since(began); d > most {
				t.Errorf("a warning took %v, want at most %v", d, most)
			}
		}
		warn(100 * time.Millisecond)
		for range 10 {
			warn(0)
		}
		out.gate <- struct{}{}
		synctest.Wait()
		warn(100 * time.Millisecond)
		warn(0)
		close(out.gate)
		synctest.Wait()
		warn(0)
		if text, _ := out.got(); strings.Count(text, "a warning") != 14 {
			t.Errorf("written = %q, want 14 warnings", text)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCloseAndAReaderThatStandsStill: it is given up after a while, and so are
// lines that come later.
func TestCloseAndAReaderThatStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := sink{gate: make(chan struct{})}
		w := telemetry.NewLineWriter(&out, nil)
		write(t, w, "a\n")
		began := time.Now()
		if err := w.Close(); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("Close = %v after %v", err, time.Since(began))
		}
		write(t, w, "b\n")
		if n := w.Dropped(); n != 1 {
			t.Errorf("%d lines dropped, want the one after Close", n)
		}
		close(out.gate)
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if text, _ := out.got(); text != "a\n" {
			t.Errorf("written = %q", text)
		}
	})
}

func TestWarningIsThereWhenLogReturns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out sink
		w := telemetry.NewLineWriter(&out, nil)
		defer w.Close()
		logger := telemetry.NewLogger(w, telemetry.FormatJSON, slog.LevelInfo).With("k", "v")
		logger.Info("first")
		if text, _ := out.got(); text != "" {
			t.Errorf("an info line was written at once: %q", text)
		}
		logger.Warn("second")
		text, _ := out.got()
		if first, second := strings.Index(text, "first"), strings.Index(
			text, "second",
		); first < 0 || second < first {
			t.Errorf("written = %q, want first and second", text)
		}
	})
}

func TestErrorsOfTheSinkAreReported(t *testing.T) {
	broken := errors.New("disk full")
	out := sink{err: broken}
	w := telemetry.NewLineWriter(&out, nil)
	write(t, w, "a\n")
	if err := w.Flush(); !errors.Is(err, broken) {
		t.Errorf("Flush = %v, want %v", err, broken)
	}
	write(t, w, "b\n")
	for range 2 {
		if err := w.Close(); !errors.Is(err, broken) {
			t.Errorf("Close = %v, want %v", err, broken)
		}
	}
	if n := w.Dropped(); n != 2 {
		t.Errorf("%d lines dropped, want 2", n)
	}
}

// TestErrorsAreToldWhenTheyAreOver: in the log itself, in its format.
func TestErrorsAreToldWhenTheyAreOver(t *testing.T) {
	unsetStandard(t)
	bubble.Test(t, func(t *testing.T) {
		out := sink{err: errors.New("disk full")}
		tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: &out})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			tel.Logger().Warn("nobody reads this")
		}
		out.mu.Lock()
		out.err = nil
		out.mu.Unlock()
		tel.Logger().Warn("somebody reads this")
		tel.Logger().Warn("and this, after the line about those before")
		metrics := scrape(t, tel, "")
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown = %v because of lost lines", err)
		}
		text, _ := out.got()
		got := lines(t, []byte(text))
		if len(got) != 3 || got[1]["dropped"] != 3.0 || got[1]["error"] != "disk full" ||
			got[1]["level"] != "WARN" {
			t.Errorf("told %v, want in between that 3 lines were dropped", got)
		}
		if !strings.Contains(metrics, "fencepost_log_dropped_total 3\n") {
			t.Error("fencepost_log_dropped_total is not 3")
		}
	})
}
