package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

const ttl = 3 * time.Second

// run is the test of one system.
type run struct {
	sys       *system
	procs     *processes
	server    *server // nil if there is none, or the harness has not started it
	address   string  // of the server, "" if there is none
	folder    string  // of this run's files
	log       *os.File
	prefix    string // of the names of locks
	mu        sync.Mutex
	histories map[string]*history // by row
}

// bench is what a row works with: clients, a history, the resource.
type bench struct {
	*run
	*history
	row      string
	ttl      time.Duration
	register register
	reason   string // why the row could not be run
	mu       sync.Mutex
	used     []*client
}

// giveUp ends the row, because it cannot be run.
func (b *bench) giveUp(format string, args ...any) {
	b.reason = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// lockName returns a name that no other row and no other run uses.
func (b *bench) lockName(part string) string { return b.prefix + b.row + part }

// fault notes a fault that is not of one client.
func (b *bench) fault(format string, args ...any) {
	b.add(event{What: fault, Text: fmt.Sprintf(format, args...)})
}

// clients returns clients with these names, which have just connected.
func (b *bench) clients(names ...string) []*client {
	all, errs := make([]*client, len(names)), make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() { all[i], errs[i] = b.connect(name) })
	}
	starting.Wait()
	for _, err := range errs {
		if err != nil {
			b.giveUp("%v", err)
		}
	}
	return all
}

// faked returns a client whose time of day follows a file, which begins as the machine's time.
func (b *bench) faked(library, name string) (c *client, setClock func(offset string)) {
	file := filepath.Join(b.folder, "clock-"+name)
	setClock = func(offset string) {
		if err := os.WriteFile(file, []byte(offset), 0o600); err != nil {
			b.giveUp("%v", err)
		}
	}
	setClock("0")
	c, err := b.connect(name, "LD_PRELOAD="+library, "FENCETEST_CLOCK="+file)
	if err != nil {
		b.giveUp("with a clock of its own, %v", err)
	}
	return c, setClock
}

// connect starts a worker with a way of its own to the server. Some locks have one TTL for each
// client, which is fixed when it connects.
func (b *bench) connect(name string, env ...string) (*client, error) {
	c := &client{b: b, name: name}
	env = append(env, fmt.Sprint("FENCETEST_TTL_MS=", b.ttl.Milliseconds()), "FENCETEST_DIR="+b.folder)
	if b.address != "" {
		var err error
		if c.proxy, err = newProxy(b.address); err != nil {
			return nil, err
		}
		env = append(env, "FENCETEST_SERVER="+c.proxy.address())
	}
	b.mu.Lock()
	b.used = append(b.used, c)
	b.mu.Unlock()
	w, err := startWorker(b.procs, b.log, b.sys, env)
	c.worker = w
	return c, err
}

// end ends all clients.
func (b *bench) end() {
	for _, c := range b.used {
		if c.worker != nil {
			c.kill()
		}
		if c.proxy != nil {
			c.proxy.close()
		}
	}
}

// missing returns why a row cannot be run, or "".
func (r *run) missing(n need) string {
	switch {
	case n >= anyServer && r.address == "":
		return "there is no server"
	case n == ownServer && r.server == nil:
		return "the harness did not start the server"
	}
	return ""
}

// play runs a row with a history of its own.
func (r *run) play(w row) (result, *history) {
	b := &bench{run: r, row: w.id, ttl: ttl, history: &history{began: time.Now()}}
	res := result{Verdict: notRun, Facts: r.missing(w.needs)}
	if res.Facts == "" {
		done := make(chan result, 1)
		go func() {
			defer close(done) // giveUp leaves it without a result
			done <- w.judge(b)
		}()
		if judged, ok := <-done; ok {
			res = judged
		} else {
			res.Facts = b.reason
		}
	}
	b.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.histories[w.id] = b.history
	res.Row, res.Seconds = w.id, time.Since(b.began).Seconds()
	return res, b.history
}

// short keeps a message within a line.
func short(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 100)]
}
