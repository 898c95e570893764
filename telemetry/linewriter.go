package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lineBatch    = 64 << 10               // bytes that are written without waiting longer
	lineCapacity = 1 << 20                // bytes that may be pending before lines are dropped
	lineDelay    = 50 * time.Millisecond  // longest time that a line is pending
	flushTimeout = 100 * time.Millisecond // for which a Flush waits for the underlying writer
	closeTimeout = 3 * time.Second        // for which Close does
)

// LineWriter is a writer that gathers lines and passes them on in batches, so
// that a line for each request does not cost a system call for each request.
// A line is passed on after at most 50 ms, or as soon as 64 KiB are pending.
// All methods may be called from any goroutine.
//
// Write never waits for the underlying writer: a log without a reader must not
// stop the service. While 1 MiB is pending, further lines are dropped; those that
// are kept keep their order. An error of the underlying writer loses the batch
// that met it. What was lost is counted, and said by a line of its own as soon as
// something can be written again.
type LineWriter struct {
	out  io.Writer
	lost func(Lost) []byte // what to write when lines were lost; nil is nothing

	started chan struct{} // holds a value after the buffer ceased to be empty
	filled  chan struct{} // holds a value after it should be passed on at once
	closing chan struct{}
	done    chan struct{} // closed when the goroutine has ended
	givenUp chan struct{} // closed when it did not end in time
	giveUp  sync.Once

	dropped atomic.Uint64

	through sync.Mutex // held while lines are written after Close

	mu      sync.Mutex
	pending []byte
	closed  bool
	stalled bool // a Flush waited in vain for the batch that is being written
	taken   uint64
	passed  uint64        // of the bytes taken, including those that met an error
	moved   chan struct{} // closed and replaced after every batch
	untold  Lost
	errs    int   // how many batches met an error
	err     error // the first of these
}

// Lost tells what did not get into the log.
type Lost struct {
	Lines uint64
	Err   error // the last that the underlying writer gave, nil if it was only too slow
}

// NewLineWriter returns a writer to out, which has no other writer. Its
// goroutine runs until Close. lost makes the line that says what was lost; nil says
// nothing.
func NewLineWriter(out io.Writer, lost func(Lost) []byte) *LineWriter {
	w := &LineWriter{
		out: out, lost: lost, started: make(chan struct{}, 1), filled: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}), givenUp: make(chan struct{}),
		moved: make(chan struct{}),
	}
	go w.run()
	return w
}

// Dropped returns how many lines were lost so far.
func (w *LineWriter) Dropped() uint64 { return w.dropped.Load() }

// Write takes one or several whole lines, or drops them; it returns no error
// before Close. After Close it writes them through.
func (w *LineWriter) Write(lines []byte) (int, error) {
	if !w.enqueue(lines) {
		return w.writeThrough(lines)
	}
	return len(lines), nil
}

// enqueue reports whether lines were dealt with, which after Close they are not.
func (w *LineWriter) enqueue(lines []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return false
	case len(w.pending) > 0 && len(w.pending)+len(lines) > lineCapacity:
		w.lose(lines, nil)
		return true
	case len(w.pending) == 0:
		signal(w.started)
	}
	w.pending = append(w.pending, lines...)
	w.taken += uint64(len(lines))
	if len(w.pending) >= lineBatch {
		signal(w.filled)
	}
	return true
}

// lose needs mu to be held.
func (w *LineWriter) lose(lines []byte, err error) {
	n := uint64(bytes.Count(lines, []byte{'\n'}))
	w.dropped.Add(n)
	w.untold.Lines += n
	if err == nil {
		return
	}
	w.errs++
	w.untold.Err = err
	if w.err == nil {
		w.err = err
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it holds one already
	}
}

// writeThrough drops the lines if those before them are not written in time.
func (w *LineWriter) writeThrough(lines []byte) (int, error) {
	if !w.ended() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lose(lines, nil)
		return len(lines), nil
	}
	w.through.Lock()
	defer w.through.Unlock()
	return w.out.Write(lines)
}

// ended waits until the goroutine has ended after Close. Only the first waits in
// vain.
func (w *LineWriter) ended() bool {
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-w.givenUp:
	case <-timer.C:
		w.giveUp.Do(func() { close(w.givenUp) })
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *LineWriter) run() {
	defer close(w.done)
	var spare []byte
	for open := true; open; {
		select {
		case <-w.started:
			open = w.gather()
		case <-w.closing:
			open = false
		}
		spare = w.pass(spare)
	}
	for w.waiting() { // what came meanwhile, and the line about what was lost
		spare = w.pass(spare)
	}
}

func (w *LineWriter) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) > 0
}

// gather waits until a batch is full or its first line has waited for long enough.
// It returns false if there will be no more.
func (w *LineWriter) gather() bool {
	timer := time.NewTimer(lineDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.filled:
	case <-w.closing:
		return false
	}
	return true
}

// pass writes what is pending. Lines are appended to spare from now on; it returns
// memory for the next time.
func (w *LineWriter) pass(spare []byte) []byte {
	w.mu.Lock()
	batch := w.pending
	w.pending = spare[:0]
	w.mu.Unlock()
	if len(batch) == 0 {
		return batch
	}
	_, err := w.out.Write(batch)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.lose(batch, err)
	} else {
		w.confess()
	}
	w.passed += uint64(len(batch))
	w.stalled = false
	close(w.moved)
	w.moved = make(chan struct{})
	return batch
}

// confess adds a line about what was lost, if something was. It needs mu to be held.
func (w *LineWriter) confess() {
	if w.untold.Lines == 0 || w.lost == nil {
		return
	}
	if len(w.pending) == 0 {
		signal(w.started)
	}
	line := w.lost(w.untold)
	w.pending, w.taken = append(w.pending, line...), w.taken+uint64(len(line))
	w.untold = Lost{}
}

// Flush passes on everything that was written before it was called, and returns
// when that is done. For an underlying writer that stands still it waits 100 ms,
// and not again before that has moved: then it returns an error, and the lines are
// still pending.
func (w *LineWriter) Flush() error {
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	target, errs := w.taken, w.errs
	for w.passed < target && !w.stalled {
		signal(w.filled)
		moved, over := w.moved, false
		w.mu.Unlock()
		select {
		case <-moved:
		case <-timer.C:
			over = true
		}
		w.mu.Lock()
		w.stalled = w.stalled || over && w.passed < target
	}
	switch {
	case w.passed < target:
		return errors.New("the log's writer stands still")
	case w.errs > errs:
		return w.untold.Err
	}
	return nil
}

// Close passes on everything that is pending, waits until that is done, and
// returns the first error that the underlying writer ever gave. It does not
// close that writer. If that stands still for 3 s it is given up with an error; the
// goroutine ends when it moves again. Calling it again is safe.
func (w *LineWriter) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if first {
		close(w.closing)
	}
	ended := w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ended {
		return errors.Join(
			w.err, fmt.Errorf("the log's writer stands still; %d bytes are not written", w.taken-w.passed),
		)
	}
	return w.err
}
