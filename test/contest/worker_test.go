package contest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// round is what a worker says of one.
type round struct {
	Lock    string
	Fence   uint64
	Outcome string
	Left    *float64
	Detail  string

	at time.Time
}

// worker is a process of a language.
type worker struct {
	language, name string

	cmd    *exec.Cmd
	input  io.Closer
	log    bytes.Buffer // what it wrote to its error output
	exited chan struct{}
	err    error // of the process; read after exited

	stopping sync.Mutex // while it is stopped

	mu     sync.Mutex
	rounds []round
	faults []string
	pauses []span
}

// span is a time for which the worker was stopped.
type span struct{ begin, end time.Time }

func newWorker(ctx context.Context, language, name string, env []string) (*worker, error) {
	w := &worker{language: language, name: name, exited: make(chan struct{})}
	w.cmd = exec.CommandContext(ctx, starter(language))
	w.cmd.Env = append(os.Environ(), env...)
	w.cmd.Stderr = &w.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.cmd.Cancel = func() error { return w.signal(syscall.SIGKILL) }
	w.cmd.WaitDelay = time.Second
	var err error
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		w.read(out)
		w.err = w.cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// signal reaches the processes that the starter has started, too.
func (w *worker) signal(s syscall.Signal) error { return syscall.Kill(-w.cmd.Process.Pid, s) }

func (w *worker) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		r := round{at: time.Now()}
		err := json.Unmarshal(lines.Bytes(), &r)
		w.mu.Lock()
		if err != nil {
			w.faults = append(w.faults, fmt.Sprintf("it prints %q: %v", lines.Text(), err))
		}
		w.rounds = append(w.rounds, r)
		w.mu.Unlock()
	}
}

// pause stops the process for a time.
func (w *worker) pause(length time.Duration) {
	w.stopping.Lock()
	defer w.stopping.Unlock()
	p := span{begin: time.Now()}
	if w.signal(syscall.SIGSTOP) != nil {
		return
	}
	<-time.After(length)
	p.end = time.Now()
	_ = w.signal(syscall.SIGCONT)
	w.mu.Lock()
	w.pauses = append(w.pauses, p)
	w.mu.Unlock()
}

// wasStopped reports whether the worker was stopped within a time before.
func (w *worker) wasStopped(before time.Time, within time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pauses {
		if p.begin.Before(before) && p.end.Add(within).After(before) {
			return true
		}
	}
	return false
}

// end asks the worker to end, and kills it if it does not.
func (w *worker) end(within time.Duration) {
	_ = w.input.Close()
	select {
	case <-w.exited:
		if w.err != nil {
			w.faults = append(w.faults, "it ends with "+w.err.Error())
		}
	case <-time.After(within):
		w.faults = append(w.faults, "it does not end")
		w.kill()
	}
	if len(w.faults) > 0 {
		w.faults = append(w.faults, w.log.String())
	}
}

func (w *worker) kill() {
	_ = w.signal(syscall.SIGKILL)
	<-w.exited
}
