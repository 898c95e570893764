package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// send sends a call to the server at an address.
func send(address string, c call) (answer call, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return answer, err
	}
	client := http.Client{Timeout: time.Second}
	r, err := client.Post("http://"+address, "", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	defer r.Body.Close()
	err = json.NewDecoder(r.Body).Decode(&answer)
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
	server, fault string
	mu            sync.Mutex
	lock          call // what renews the entry
}

func work(fault string) error {
	w := &worker{server: os.Getenv("FENCETEST_SERVER"), fault: fault}
	say, requests := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	for event := (message{Event: "ready"}); ; {
		if err := say.Encode(event); err != nil {
			return err
		}
		var m message
		if err := requests.Decode(&m); err != nil {
			return nil // the harness has ended
		}
		event = message{Event: "lost"}
		switch {
		case m.Do == "acquire":
			event = w.acquire(m)
		case m.Do == "check" && w.renew():
			event.Event = "held"
		case m.Do == "release" && w.leave():
			event.Event = "released"
		}
	}
}

func (w *worker) acquire(m message) message {
	c := call{Op: "join", Lock: m.Name, ID: rand.Text(), New: true}
	c.TTL = time.Duration(m.TTL) * time.Millisecond
	for deadline := time.Now().Add(time.Duration(m.Wait) * time.Millisecond); ; {
		answer, err := send(w.server, c)
		switch {
		case err != nil && w.fault == "immortal":
			c.ID = rand.Text()
		case err != nil && w.fault == "believes":
			_, _ = send(w.server, call{Op: "leave", Lock: c.Lock, ID: c.ID})
			answer.Held = true
		}
		if answer.Held {
			c.New = false
			w.mu.Lock()
			w.lock = c
			w.mu.Unlock()
			go w.keep(c)
			return message{Event: "held", Fence: strconv.Itoa(answer.Fence)}
		}
		if time.Now().After(deadline) {
			_, _ = send(w.server, call{Op: "leave", Lock: c.Lock, ID: c.ID})
			return message{Event: "not_held"}
		}
		<-time.After(100 * time.Millisecond)
	}
}

// keep renews the lock until the client releases it.
func (w *worker) keep(c call) {
	for same := true; same; {
		<-time.After(c.TTL / 3)
		w.mu.Lock()
		same = w.lock.ID == c.ID
		w.mu.Unlock()
		if same {
			w.renew()
		}
	}
}

// renew returns whether the client may believe that it holds its lock.
func (w *worker) renew() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer, err := send(w.server, w.lock)
	return err == nil && answer.Held || w.fault == "deaf" || w.fault == "believes"
}

func (w *worker) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.lock
	c.Op, w.lock = "leave", call{}
	answer, err := send(w.server, c)
	return err == nil && !answer.Gone
}
