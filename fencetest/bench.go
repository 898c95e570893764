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
	idle      []*client
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
	used     []*client
}

// giveUp ends the row, because it cannot be run.
func (b *bench) giveUp(format string, args ...any) {
	b.reason = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// granted reports whether a client was granted a lock, or waited in vain. An error tells nothing.
func (b *bench) granted(a answer) bool {
	if a.Event != "held" && a.Event != "not_held" {
		b.giveUp("the next client gets %s %s", a.Event, short(a.Text))
	}
	return a.Event == "held"
}

// lockName returns a name that no other row and no other run uses.
func (b *bench) lockName(part string) string { return b.prefix + b.row + part }

// fault notes a fault that is not of one client.
func (b *bench) fault(format string, args ...any) {
	b.add(event{What: fault, Text: fmt.Sprintf(format, args...)})
}

// clients returns clients with these names, connected and without a lock.
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

// connect returns a client that another row has left idle, or starts a worker with a way of its own
// to the server. Some locks have one TTL for each client, which is fixed when it connects.
func (b *bench) connect(name string, env ...string) (*client, error) {
	c := &client{b: b, name: name, reusable: len(env) == 0 && b.ttl == ttl}
	if b.take(c) {
		return c, nil
	}
	return c, c.start(env)
}

// take gives c an idle worker: eight JVMs that start slow down what is measured next to them.
func (b *bench) take(c *client) bool {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	b.used = append(b.used, c)
	n := len(b.idle) - 1
	if n < 0 || !c.reusable {
		return false
	}
	c.worker, c.proxy = b.idle[n].worker, b.idle[n].proxy
	b.idle = b.idle[:n]
	return true
}

func (c *client) start(env []string) (err error) {
	b := c.b
	env = append(env, fmt.Sprint("FENCETEST_TTL_MS=", b.ttl.Milliseconds()), "FENCETEST_DIR="+b.folder)
	if b.address != "" {
		if c.proxy, err = newProxy(b.address); err != nil {
			return err
		}
		env = append(env, "FENCETEST_SERVER="+c.proxy.address())
	}
	c.worker, err = startWorker(b.procs, b.log, b.sys, env)
	return err
}

// end leaves clients without a lock to other rows, and ends the others.
func (b *bench) end() {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	for _, c := range b.used {
		idle := c.last() == "" || c.last() == freed || c.last() == gaveUp
		if c.reusable && idle && c.worker != nil && !c.over() {
			b.idle = append(b.idle, c)
		} else {
			c.end()
		}
	}
}

func (c *client) end() {
	if c.worker != nil {
		c.kill()
	}
	if c.proxy != nil {
		c.proxy.close()
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
