package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	lineBatch    = 64 << 10              // bytes that are written without waiting longer
	lineCapacity = 1 << 20               // bytes that may be pending before Write blocks
	lineDelay    = 50 * time.Millisecond // longest time that a line is pending
)

// LineWriter is a writer that gathers lines and passes them on in batches, so
// that a line for each request does not cost a system call for each request.
// A line is passed on after at most 50 ms, or as soon as 64 KiB are pending.
// Write blocks while 1 MiB is pending: lines are delayed, never dropped, and
// their order is kept. All methods may be called from any goroutine.
//
// An error of the underlying writer loses the batch that met it, and shows in
// the Flush that met it and in Close: a log that cannot be written must not stop
// the service.
type LineWriter struct {
	out io.Writer

	started chan struct{} // holds a value after the buffer ceased to be empty
	filled  chan struct{} // holds a value after it reached lineBatch
	closing chan struct{}
	done    chan struct{} // closed when the goroutine has ended

	// writing is held while out is written to. It comes before mu and guards
	// spare and err.
	writing sync.Mutex
	spare   []byte
	err     error // the first of out

	mu      sync.Mutex
	room    sync.Cond // pending shrank, or closed was set
	pending []byte
	closed  bool
}

// NewLineWriter returns a writer to out, which nobody else should write to. Its
// goroutine runs until Close.
func NewLineWriter(out io.Writer) *LineWriter {
	w := &LineWriter{
		out:     out,
		started: make(chan struct{}, 1),
		filled:  make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	w.room.L = &w.mu
	go w.run()
	return w
}

// Write takes one or several whole lines. After Close it writes them through.
func (w *LineWriter) Write(lines []byte) (int, error) {
	if !w.enqueue(lines) {
		return w.writeThrough(lines)
	}
	return len(lines), nil
}

// enqueue reports whether lines were taken, which after Close they are not.
func (w *LineWriter) enqueue(lines []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && len(w.pending) > 0 && len(w.pending)+len(lines) > lineCapacity {
		signal(w.filled)
		w.room.Wait()
	}
	if w.closed {
		return false
	}
	if len(w.pending) == 0 {
		signal(w.started)
	}
	w.pending = append(w.pending, lines...)
	if len(w.pending) >= lineBatch {
		signal(w.filled)
	}
	return true
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it holds one already
	}
}

// writeThrough keeps the order: lines that are pending go first.
func (w *LineWriter) writeThrough(lines []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.flush(); err != nil {
		return 0, err
	}
	return w.out.Write(lines)
}

func (w *LineWriter) run() {
	defer close(w.done)
	for {
		select {
		case <-w.started:
		case <-w.closing:
			return
		}
		w.gather()
		// The error is kept for Close; there is nobody here to tell it to.
		_ = w.Flush()
	}
}

// gather waits until a batch is full or its first line has waited for long enough.
func (w *LineWriter) gather() {
	timer := time.NewTimer(lineDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.filled:
	case <-w.closing:
	}
}

// Flush passes on everything that was written before it was called, and returns
// when that is done.
func (w *LineWriter) Flush() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.flush()
}

// flush needs writing to be held.
func (w *LineWriter) flush() error {
	w.mu.Lock()
	batch := w.pending
	w.pending, w.spare = w.spare[:0], nil
	w.room.Broadcast()
	w.mu.Unlock()

	w.spare = batch
	if len(batch) == 0 {
		return nil
	}
	_, err := w.out.Write(batch)
	if w.err == nil {
		w.err = err
	}
	return err
}

// Close passes on everything that is pending, waits until that is done, and
// returns the first error that the underlying writer ever gave. It does not
// close that writer. Calling it again is safe.
func (w *LineWriter) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	if first {
		close(w.closing)
	}
	<-w.done

	w.writing.Lock()
	defer w.writing.Unlock()
	_ = w.flush() // recorded in w.err
	return w.err
}
