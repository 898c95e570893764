package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A worker asks before each write and writes once it is answered. So the stage
// knows where every worker is, and a strike falls exactly between the last check
// of the lease and the write: no sleep has to be lucky.
const (
	killed    = "bash-1"
	stopped   = "python"
	bystander = "javascript"

	strikeTurn  = 2 // the strikes fall in the second batch of their worker
	strikeWrite = 6 // before its sixth write
)

// question is a worker about to write.
type question struct {
	worker, lock, invoice string
	fence                 int64
}

// stage answers the workers.
type stage struct {
	url    string
	server *http.Server
	served chan struct{} // closed when the server has ended

	strikes chan question // a worker at the point where it will be killed
	struck  chan struct{} // closed when both strikes have fallen
	wake    chan struct{} // closed when the stopped worker may go on
	quit    chan struct{} // closed when the stage ends

	mu    sync.Mutex
	turns map[string]turn
}

// turn is where a worker is: its how-manieth batch, and the writes asked for in it.
type turn struct {
	fence         int64
	count, writes int
}

func openStage() (*stage, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &stage{
		url:    "http://" + listener.Addr().String() + "/",
		served: make(chan struct{}), strikes: make(chan question, 2), struck: make(chan struct{}),
		wake: make(chan struct{}), quit: make(chan struct{}), turns: map[string]turn{},
	}
	s.server = &http.Server{Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // ends by Close
	}()
	return s, nil
}

// close lets every worker go and ends the server.
func (s *stage) close() {
	close(s.quit)
	_ = s.server.Close()
	<-s.served
}

func (s *stage) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1024))
	var q question
	if err == nil {
		_, err = fmt.Sscan(strings.TrimSpace(string(body)), &q.worker, &q.lock, &q.fence, &q.invoice)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.hold(r.Context(), q)
	w.WriteHeader(http.StatusNoContent)
}

// hold returns when q may write.
func (s *stage) hold(ctx context.Context, q question) {
	t := s.count(q)
	var until chan struct{}
	switch {
	case t.count == strikeTurn && t.writes == strikeWrite && q.worker == killed:
		s.strikes <- q
		until = s.struck // only what it leaves behind is still there to be answered
	case t.count == strikeTurn && t.writes == strikeWrite && q.worker == stopped:
		s.strikes <- q
		until = s.wake
	case t.count > strikeTurn && q.worker == bystander:
		until = s.struck // so that it cannot finish everything before
	default:
		return
	}
	select {
	case <-until:
	case <-ctx.Done():
	case <-s.quit:
	}
}

func (s *stage) count(q question) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[q.worker]
	if t.fence != q.fence {
		t = turn{fence: q.fence, count: t.count + 1}
	}
	t.writes++
	s.turns[q.worker] = t
	return t
}
