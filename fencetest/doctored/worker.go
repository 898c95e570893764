package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// link is a connection that opens again after it broke.
type link struct {
	address string
	mu      sync.Mutex
	conn    net.Conn
	answers *json.Decoder
}

func (l *link) call(c call) (answer call, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		if l.conn, err = net.DialTimeout("tcp", l.address, time.Second); err != nil {
			l.conn = nil
			return answer, err
		}
		l.answers = json.NewDecoder(l.conn)
	}
	err = l.conn.SetDeadline(time.Now().Add(time.Second))
	if err = errors.Join(err, json.NewEncoder(l.conn).Encode(c)); err == nil {
		err = l.answers.Decode(&answer)
	}
	if err != nil {
		l.conn.Close()
		l.conn = nil
	}
	return answer, err
}

type message struct {
	Do    string `json:"do,omitempty"`
	Name  string `json:"name,omitempty"`
	TTL   int    `json:"ttl_ms,omitempty"`
	Wait  int    `json:"wait_ms,omitempty"`
	Event string `json:"event,omitempty"`
	Fence string `json:"fence,omitempty"`
}

// worker is one client with at most one lock.
type worker struct {
	*link
	fault string
	mu    sync.Mutex
	lock  call      // what renews the entry
	ends  time.Time // the lock is lost then, whatever the server says
}

func work(in io.Reader, out io.Writer, fault string) error {
	w := &worker{link: &link{address: os.Getenv("FENCETEST_SERVER")}, fault: fault}
	if _, err := w.call(call{Op: "join"}); err != nil {
		return err
	}
	say := json.NewEncoder(out)
	event := message{Event: "ready"}
	for requests := json.NewDecoder(in); ; {
		if err := say.Encode(event); err != nil {
			return err
		}
		var m message
		if err := requests.Decode(&m); err != nil {
			return nil // the harness has ended
		}
		event = w.do(m)
	}
}

func (w *worker) do(m message) message {
	switch m.Do {
	case "acquire":
		return w.acquire(m)
	case "check":
		if w.renew() {
			return message{Event: "held"}
		}
	case "release":
		if w.leave() {
			return message{Event: "released"}
		}
	}
	return message{Event: "lost"}
}

func (w *worker) acquire(m message) message {
	ttl := time.Duration(m.TTL) * time.Millisecond
	c := call{Op: "join", Lock: m.Name, ID: rand.Text(), TTL: ttl, New: true}
	for deadline := time.Now().Add(time.Duration(m.Wait) * time.Millisecond); ; {
		began := time.Now()
		answer, err := w.call(c)
		switch {
		case err != nil && w.fault == "immortal":
			c.ID = rand.Text()
		case err != nil && w.fault == "believes":
			_, _ = w.call(call{Op: "leave", Lock: c.Lock, ID: c.ID})
			answer.Held = true
		}
		if answer.Held {
			w.mu.Lock()
			c.New = false
			w.lock, w.ends = c, began.Add(ttl)
			w.mu.Unlock()
			go w.keep(c)
			return message{Event: "held", Fence: strconv.Itoa(answer.Fence)}
		}
		if time.Now().After(deadline) {
			_, _ = w.call(call{Op: "leave", Lock: c.Lock, ID: c.ID})
			return message{Event: "not_held"}
		}
		<-time.After(100 * time.Millisecond)
	}
}

// keep renews the lock until it is lost or released.
func (w *worker) keep(c call) {
	for {
		<-time.After(c.TTL / 3)
		w.mu.Lock()
		same := w.lock.ID == c.ID
		w.mu.Unlock()
		if !same || !w.renew() {
			return
		}
	}
}

// renew returns whether the client may believe that it holds its lock.
func (w *worker) renew() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := time.Now()
	answer, err := w.call(w.lock)
	switch {
	case w.fault == "deaf" || w.fault == "believes":
		return true
	case err == nil && answer.Held:
		w.ends = began.Add(w.lock.TTL)
	case err == nil:
		w.ends = began
	}
	return time.Now().Before(w.ends)
}

func (w *worker) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.lock
	c.Op, w.lock = "leave", call{}
	for range 30 {
		if answer, err := w.call(c); err == nil {
			return !answer.Gone || w.fault != ""
		}
		<-time.After(100 * time.Millisecond)
	}
	return false
}
