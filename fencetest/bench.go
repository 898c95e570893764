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

// run is the test of one system: its server, and the workers that rows have used and left idle.
type run struct {
	sys       *system
	procs     *processes
	server    *server // nil if there is none, or the harness has not started it
	address   string  // of the server, "" if there is none
	folder    string  // of this run's files
	log       *os.File
	prefix    string // of the names of locks
	mu        sync.Mutex
	idle      []*worker
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

// clients returns clients with these names, connected and without a lock.
func (b *bench) clients(names ...string) []*client { return b.connect(b.take, names) }

// fresh returns clients that connect now, for rows after which old connections are of no use.
func (b *bench) fresh(names ...string) []*client {
	return b.connect(func() (*worker, error) { return b.open(b.ttl) }, names)
}

func (b *bench) connect(open func() (*worker, error), names []string) []*client {
	all, errs := make([]*client, len(names)), make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() {
			w, err := open()
			if errs[i] = err; err == nil {
				all[i] = b.play(w, name)
			}
		})
	}
	starting.Wait()
	for _, err := range errs {
		if err != nil {
			b.giveUp("%v", err)
		}
	}
	return all
}

// play gives a worker a role in the row.
func (b *bench) play(w *worker, name string) *client {
	c := &client{worker: w, b: b, name: name}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = append(b.used, c)
	return c
}

// faked returns a client whose time of day follows a file, which begins as the machine's time.
func (b *bench) faked(library, name string) (c *client, setClock func(offset string)) {
	file := filepath.Join(b.folder, "clock-"+b.row+"-"+name)
	setClock = func(offset string) {
		if err := os.WriteFile(file, []byte(offset), 0o600); err != nil {
			b.giveUp("%v", err)
		}
	}
	setClock("0")
	w, err := b.open(b.ttl, "LD_PRELOAD="+library, "FENCETEST_CLOCK="+file)
	if err != nil {
		b.giveUp("with a clock of its own, %v", err)
	}
	c = b.play(w, name)
	c.faked = true
	return c, setClock
}

// take returns an idle worker, or a new one.
func (r *run) take() (*worker, error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		defer r.mu.Unlock()
		w := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return w, nil
	}
	r.mu.Unlock()
	return r.open(ttl)
}

// open starts a worker with a way of its own to the server. Some locks have one TTL for each
// client, which is fixed when it connects.
func (r *run) open(ttl time.Duration, env ...string) (w *worker, err error) {
	env = append(env, fmt.Sprint("FENCETEST_TTL_MS=", ttl.Milliseconds()), "FENCETEST_DIR="+r.folder)
	var p *proxy
	if r.address != "" {
		if p, err = newProxy(r.address); err != nil {
			return nil, err
		}
		env = append(env, "FENCETEST_SERVER="+p.address())
	}
	if w, err = startWorker(r.procs, r.log, r.sys, env); err == nil {
		w.proxy = p
	} else if p != nil {
		p.close()
	}
	return w, err
}

// end keeps the workers that are idle for other rows, and ends the others.
func (b *bench) end() {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	b.histories[b.row] = b.history
	for _, c := range b.used {
		last := c.lastEvent().What
		if c.over() || c.faked || b.ttl != ttl || last != freed && last != gaveUp {
			c.worker.stop()
			continue
		}
		c.worker.mu.Lock()
		c.unasked = nil
		c.worker.mu.Unlock()
		b.idle = append(b.idle, c.worker)
	}
	b.used = nil
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
	res.Row, res.Seconds = w.id, time.Since(b.began).Seconds()
	return res, b.history
}

// short keeps a message within a line.
func short(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 100)]
}
