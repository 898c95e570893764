// Doctored is a lock over HTTP with faults to order, to test the test: each fault must be found.
// Without a fault it is sound: a queue on disk, leases, a fence for each entry.
//
//	doctored serve PORT DIR [FAULT]
//	doctored replica PORT DIR PRIMARY_PORT
//	doctored work [FAULT]
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// entry is one client's wish for a lock. The first of a queue holds.
type entry struct {
	ID    string
	TTL   time.Duration
	Fence int
	ends  time.Time
	waits bool
}

// state is what survives a restart.
type state struct {
	Fence  int
	Queues map[string][]*entry
}

// call is a request to the server, and its answer.
type call struct {
	Op, Lock, ID string // join, which also renews, or leave, or copy
	TTL          time.Duration
	New          bool // join: else the entry must be there
	Held, Gone   bool
	Fence        int
	State        json.RawMessage `json:",omitempty"`
}

type server struct {
	mu          sync.Mutex
	file, fault string
	state       state
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "doctored:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	args = append(args, make([]string, 4)...) // what is left out is empty
	switch args[0] {
	case "work":
		return work(args[1])
	case "serve":
		return serve(args[1], &server{file: filepath.Join(args[2], "state"), fault: args[3]})
	}
	s := &server{file: filepath.Join(args[2], "state")}
	go s.follow(args[3])
	return serve(args[1], s)
}

func serve(port string, s *server) error {
	text, err := os.ReadFile(s.file)
	if err != nil || s.fault == "forgets" {
		text = []byte(`{"Queues": {}}`)
	}
	if err := s.take(text); err != nil {
		return err
	}
	return http.ListenAndServe("127.0.0.1:"+port, s)
}

// take replaces the state. The leases begin again: no clock says how old they are.
func (s *server) take(text []byte) error {
	var all state
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, queue := range all.Queues {
		for _, e := range queue {
			e.ends = time.Now().Add(e.TTL)
		}
	}
	s.state = all
	return nil
}

// follow takes over the state of the primary, some time after each change, and stops with it.
func (s *server) follow(primary string) {
	for ; ; <-time.After(100 * time.Millisecond) {
		if c, err := send("127.0.0.1:"+primary, call{Op: "copy"}); err == nil {
			s.mu.Lock()
			_ = s.take(c.State) // or the next one
			s.mu.Unlock()
		}
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c call
	err := json.NewDecoder(r.Body).Decode(&c)
	if err == nil {
		err = s.apply(&c)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(c) // a client that is gone
}

func (s *server) apply(c *call) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Op == "copy" {
		c.State, err = json.Marshal(s.state)
		return err
	}
	s.state.Queues[c.Lock] = slices.DeleteFunc(s.state.Queues[c.Lock], s.expired)
	i := slices.IndexFunc(s.state.Queues[c.Lock], func(e *entry) bool { return e.ID == c.ID })
	if c.Op == "join" {
		s.join(c, i)
	} else {
		s.leave(c, i)
	}
	text, err := json.Marshal(s.state)
	if err == nil {
		err = os.WriteFile(s.file+".new", text, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(s.file+".new", s.file)
}

func (s *server) expired(e *entry) bool {
	leaks := s.fault == "immortal" && !e.waits || s.fault == "leaks-waiters" && e.waits
	return !leaks && time.Now().After(e.ends)
}

// join renews the entry at place i of its queue, or adds one.
func (s *server) join(c *call, i int) {
	if c.Gone = i < 0 && !c.New; c.Gone {
		return
	}
	if i < 0 {
		i = s.enqueue(c)
	}
	e := s.state.Queues[c.Lock][i]
	e.ends, e.waits = time.Now().Add(e.TTL), i > 0
	c.Fence, c.Held = e.Fence, i == 0 || s.fault == "no-exclusion"
}

// enqueue adds an entry behind the others and returns its place.
func (s *server) enqueue(c *call) int {
	s.state.Fence++
	e := &entry{ID: c.ID, TTL: c.TTL, Fence: s.state.Fence}
	place := len(s.state.Queues[c.Lock])
	switch s.fault {
	case "fence-repeats":
		e.Fence /= 2
	case "fence-falls":
		e.Fence = 1_000_000 - e.Fence
	case "unfair":
		place = min(place, 1)
	}
	s.state.Queues[c.Lock] = slices.Insert(s.state.Queues[c.Lock], place, e)
	return place
}

func (s *server) leave(c *call, i int) {
	if s.fault == "releases-any" && len(s.state.Queues[c.Lock]) > 0 {
		i = 0
	}
	if c.Gone = i < 0; !c.Gone {
		s.state.Queues[c.Lock] = slices.Delete(s.state.Queues[c.Lock], i, i+1)
	}
}
