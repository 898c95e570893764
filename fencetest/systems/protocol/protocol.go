// Package protocol makes a Go program a worker of fencetest: it reads commands and writes events,
// one JSON object a line, and calls a lock library.
package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"
)

var (
	// ErrLost is the answer of Check, Release and a renewal if the library says that the lock is gone.
	ErrLost = errors.New("the lock is lost")
	// ErrNotHeld is what Acquire returns if the library says that the wait is over.
	ErrNotHeld = errors.New("the wait is over")
)

// Held is a lock as its library shows it.
type Held struct {
	Fence   string                      // decimal; "" if the lock has none
	Check   func(context.Context) error // nil while the library says that the lock is held
	Release func(context.Context) error
	Lost    <-chan struct{} // closed when the library reports a loss unasked; nil if it never does
}

// HeldUntil is the check of a library that closes a channel when the lock is lost.
func HeldUntil(lost <-chan struct{}) func(context.Context) error {
	return func(context.Context) error {
		select {
		case <-lost:
			return ErrLost
		default:
			return nil
		}
	}
}

// Request is the lock that the harness asks for.
type Request struct {
	Name      string
	TTL, Wait time.Duration
}

// Acquire takes a lock. Its context ends with the wait, and any error after that means that the
// wait is over. A library that limits the wait by itself uses Request.Wait and ErrNotHeld.
type Acquire func(context.Context, Request) (*Held, error)

type command struct {
	Do   string `json:"do"`
	Name string `json:"name"`
	TTL  int64  `json:"ttl_ms"`
	Wait int64  `json:"wait_ms"`
}

type event struct {
	Event string `json:"event"`
	Fence string `json:"fence,omitempty"`
	Text  string `json:"text,omitempty"`
}

// answerTimeout bounds a check and a release.
const answerTimeout = 10 * time.Second

// Run answers commands until standard input ends. That ends the process without a release.
func Run(acquire Acquire) {
	commands := make(chan command)
	go func() {
		for in := json.NewDecoder(os.Stdin); ; {
			var c command
			if in.Decode(&c) != nil {
				os.Exit(0)
			}
			commands <- c
		}
	}()
	w := worker{acquire: acquire, out: json.NewEncoder(os.Stdout)}
	for w.say(event{Event: "ready"}); ; {
		var lost <-chan struct{}
		if w.held != nil {
			lost = w.held.Lost
		}
		select {
		case <-lost:
			w.held = nil
			w.say(event{Event: "lost"})
		case c := <-commands:
			w.say(w.answer(c))
		}
	}
}

type worker struct {
	acquire Acquire
	out     *json.Encoder
	held    *Held
}

func (w *worker) say(e event) {
	if w.out.Encode(e) != nil {
		os.Exit(1)
	}
}

func (w *worker) answer(c command) event {
	if c.Do == "acquire" {
		return w.take(c)
	}
	if w.held == nil {
		return event{Event: "lost"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	do, done := w.held.Check, event{Event: "held"}
	if c.Do == "release" {
		do, done = w.held.Release, event{Event: "released"}
	}
	err := do(ctx)
	if c.Do == "release" || errors.Is(err, ErrLost) {
		w.held = nil
	}
	return result(done, err)
}

func (w *worker) take(c command) event {
	ttl, wait := time.Duration(c.TTL)*time.Millisecond, time.Duration(c.Wait)*time.Millisecond
	want := Request{Name: c.Name, TTL: ttl, Wait: wait}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	held, err := w.acquire(ctx, want)
	switch {
	case err == nil:
		w.held = held
		return event{Event: "held", Fence: held.Fence}
	case ctx.Err() != nil || errors.Is(err, ErrNotHeld):
		return event{Event: "not_held"}
	}
	return result(event{}, err)
}

func result(done event, err error) event {
	switch {
	case err == nil:
		return done
	case errors.Is(err, ErrLost):
		return event{Event: "lost"}
	}
	return event{Event: "error", Text: err.Error()}
}
