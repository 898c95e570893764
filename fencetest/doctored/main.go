// Doctored is a lock over HTTP with faults to order, to test the test: each fault must be found.
// Without a fault it is sound: a queue on disk, leases, a fence for each entry.
//
//	doctored serve PORT DIR [FAULT]
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
	Op, Lock, ID string // join, which also renews, or leave
	TTL          time.Duration
	New          bool // join: else the entry must be there
	Held, Gone   bool
	Fence        int
}

type server struct {
	mu          sync.Mutex
	file, fault string
	state       state
}

func main() {
	args := append(os.Args[1:], make([]string, 4)...) // what is left out is empty
	serves := func() error { return serve(args[1], filepath.Join(args[2], "state"), args[3]) }
	if args[0] == "work" {
		serves = func() error { return work(args[1]) }
	}
	if err := serves(); err != nil {
		fmt.Fprintln(os.Stderr, "doctored:", err)
		os.Exit(1)
	}
}

// serve reads the queues. Leases begin again: no clock says how long the server was away.
func serve(port, file, fault string) error {
	s := &server{file: file, fault: fault, state: state{Queues: map[string][]*entry{}}}
	if text, err := os.ReadFile(file); err == nil && fault != "forgets" {
		if err := json.Unmarshal(text, &s.state); err != nil {
			return err
		}
	}
	for _, queue := range s.state.Queues {
		for _, e := range queue {
			e.ends = time.Now().Add(e.TTL)
		}
	}
	return http.ListenAndServe("127.0.0.1:"+port, s)
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

func (s *server) apply(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
