// Doctored is a lock over TCP with faults to order, to test the test: each fault must be found.
// Without a fault it is sound: a queue on disk, leases, a fence for each entry.
//
//	doctored serve PORT DIR [FAULT]
//	doctored replica PORT DIR PRIMARY_PORT
//	doctored work [FAULT]
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
	Op    string        `json:"op"` // join, which also renews, leave, state
	Lock  string        `json:"lock"`
	ID    string        `json:"id"`
	TTL   time.Duration `json:"ttl"`
	New   bool          `json:"new"` // join: else the entry must be there
	Held  bool          `json:"held"`
	Gone  bool          `json:"gone"`
	Fence int           `json:"fence"`

	State json.RawMessage `json:"state,omitempty"`
}

type server struct {
	mu    sync.Mutex
	file  string
	fault string
	state state
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "doctored:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	args = append(args, make([]string, 5)...) // what is left out is empty
	switch args[0] {
	case "serve":
		return serve(args[1], args[2], args[3], "")
	case "replica":
		return serve(args[1], args[2], "", args[3])
	case "work":
		return work(os.Stdin, os.Stdout, args[1])
	}
	return fmt.Errorf("no command %q", args[0])
}

func serve(port, folder, fault, primary string) error {
	s := &server{file: filepath.Join(folder, "state"), fault: fault}
	if err := s.load(); err != nil {
		return err
	}
	if primary != "" {
		go s.follow(primary)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go s.handle(conn)
	}
}

func (s *server) load() error {
	s.state.Queues = map[string][]*entry{}
	text, err := os.ReadFile(s.file)
	if os.IsNotExist(err) || s.fault == "forgets" {
		return nil
	}
	if err != nil {
		return err
	}
	return s.take(text)
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

func (s *server) save() error {
	text, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.file+".new", s.file)
}

func (s *server) handle(conn net.Conn) {
	defer conn.Close()
	answers := json.NewEncoder(conn)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var c call
		if json.Unmarshal(lines.Bytes(), &c) != nil || s.apply(&c) != nil || answers.Encode(c) != nil {
			return
		}
	}
}

func (s *server) apply(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(c.Lock)
	switch c.Op {
	case "join":
		s.join(c)
	case "leave":
		s.leave(c)
	case "state":
		var err error
		c.State, err = json.Marshal(s.state)
		return err
	}
	return s.save()
}

func (s *server) expire(lock string) {
	queue := s.state.Queues[lock]
	kept := queue[:0:0]
	for i, e := range queue {
		leaks := i == 0 && s.fault == "immortal" || e.waits && s.fault == "leaks-waiters"
		if leaks || time.Now().Before(e.ends) {
			kept = append(kept, e)
		}
	}
	s.state.Queues[lock] = kept
}

// find returns the place of an entry in its queue, or -1.
func (s *server) find(c *call) int {
	for i, e := range s.state.Queues[c.Lock] {
		if e.ID == c.ID {
			return i
		}
	}
	return -1
}

func (s *server) join(c *call) {
	i := s.find(c)
	if i < 0 && !c.New {
		c.Gone = true
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
	switch s.fault {
	case "fence-repeats":
		e.Fence /= 2
	case "fence-falls":
		e.Fence = 1_000_000 - e.Fence
	}
	queue := s.state.Queues[c.Lock]
	place := len(queue)
	if s.fault == "unfair" && place > 1 {
		place = 1
	}
	queue = append(queue[:place:place], append([]*entry{e}, queue[place:]...)...)
	s.state.Queues[c.Lock] = queue
	return place
}

func (s *server) leave(c *call) {
	i := s.find(c)
	if s.fault == "releases-any" && len(s.state.Queues[c.Lock]) > 0 {
		i = 0
	}
	if c.Gone = i < 0; !c.Gone {
		queue := s.state.Queues[c.Lock]
		s.state.Queues[c.Lock] = append(queue[:i:i], queue[i+1:]...)
	}
}

// follow takes over the state of the primary, some time after each change, and stops with it.
func (s *server) follow(primary string) {
	for l := (&link{address: "127.0.0.1:" + primary}); ; <-time.After(100 * time.Millisecond) {
		c, err := l.call(call{Op: "state"})
		if err != nil {
			continue
		}
		s.mu.Lock()
		_ = s.take(c.State) // or the next one
		s.mu.Unlock()
	}
}
