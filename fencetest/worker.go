package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// answer is what a worker says. Two events are the harness's own: "silent" for no answer in time,
// and "ended" for a worker that is no more.
type answer struct {
	Event string `json:"event"`
	Fence string `json:"fence"`
	Text  string `json:"text"`
}

// request is what the harness asks of a worker.
type request struct {
	Do   string `json:"do"`
	Name string `json:"name,omitempty"`
	TTL  int64  `json:"ttl_ms,omitempty"`
	Wait int64  `json:"wait_ms,omitempty"`
}

// worker is a process with a client of the lock that is tested.
type worker struct {
	*group
	input   io.WriteCloser
	answers chan answer

	mu      sync.Mutex
	wanted  []string     // the events that answer the request which is pending
	unasked func(answer) // receives the others
}

const (
	workerStarts = 60 * time.Second
	workerAnswer = 15 * time.Second
)

// startWorker starts a worker and waits until it is ready. Its messages to people go to log.
func startWorker(procs *processes, log io.Writer, s *system, env []string) (*worker, error) {
	cmd := exec.CommandContext(context.Background(), s.Worker[0], s.Worker[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.folder, append(os.Environ(), env...), log
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	w := &worker{input: input, answers: make(chan answer, 1), wanted: []string{"ready"}}
	w.group, err = procs.start(cmd)
	in.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go w.read(out)
	if a := w.await(workerStarts); a.Event != "ready" {
		w.kill()
		return nil, fmt.Errorf("the worker is not ready: %s %s", a.Event, a.Text)
	}
	return w, nil
}

func (w *worker) read(out io.ReadCloser) {
	defer out.Close()
	defer close(w.answers)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a = answer{Event: "error", Text: "not JSON: " + lines.Text()}
		}
		w.hear(a)
	}
}

// hear delivers an event as the answer to the pending request, or as unasked.
func (w *worker) hear(a answer) {
	w.mu.Lock()
	unasked := w.unasked
	if slices.Contains(w.wanted, a.Event) || a.Event == "error" && w.wanted != nil {
		w.wanted, unasked = nil, nil
		w.answers <- a // has space for the one answer
	}
	w.mu.Unlock()
	if unasked != nil {
		unasked(a)
	}
}

// ask sends a request and waits for one of the events that answer it.
func (w *worker) ask(r request, within time.Duration, wanted ...string) answer {
	w.mu.Lock()
	w.wanted = wanted
	w.mu.Unlock()
	if err := json.NewEncoder(w.input).Encode(r); err != nil {
		return answer{Event: "ended"}
	}
	return w.await(within)
}

func (w *worker) await(within time.Duration) (a answer) {
	select {
	case a = <-w.answers:
	case <-time.After(within):
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wanted = nil
		a.Event = "silent"
		select {
		case a = <-w.answers: // at the last moment
		default:
		}
	}
	if a.Event == "" { // the channel is closed
		a.Event = "ended"
	}
	return a
}
