package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
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

// client is a worker in its role in one row.
type client struct {
	*worker
	b     *bench
	name  string
	lock  string
	fence string
	faked bool // its clock
}

// giveUp ends the row, because it cannot be run.
func (b *bench) giveUp(format string, args ...any) {
	b.reason = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// lockName returns a name that no other row and no other run uses.
func (b *bench) lockName(part string) string { return b.prefix + b.row + part }

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
			var w *worker
			if w, errs[i] = open(); errs[i] == nil {
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
	for len(r.idle) > 0 {
		w := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		if !w.over() {
			r.mu.Unlock()
			return w, nil
		}
	}
	r.mu.Unlock()
	return r.open(ttl)
}

// open starts a worker with a way of its own to the server. Some locks have one TTL for each
// client, which is fixed when it connects.
func (r *run) open(ttl time.Duration, env ...string) (*worker, error) {
	var p *proxy
	env = append(env, fmt.Sprint("FENCETEST_TTL_MS=", ttl.Milliseconds()),
		"FENCETEST_DIR="+r.folder, "FENCETEST_SERVER="+r.address)
	if r.address != "" {
		var err error
		if p, err = newProxy(r.address); err != nil {
			return nil, err
		}
		env[len(env)-1] = "FENCETEST_SERVER=" + p.address()
	}
	w, err := startWorker(r.procs, r.log, r.sys.folder, env, r.sys.Worker)
	if err != nil {
		if p != nil {
			p.close()
		}
		return nil, err
	}
	w.proxy = p
	return w, nil
}

// end keeps the workers that are idle for other rows, and ends the others.
func (b *bench) end() {
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	b.histories[b.row] = b.history
	for _, c := range b.used {
		if c.over() || c.faked || !c.isIdle() {
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

// isIdle reports whether the client has no lock and asks for none.
func (c *client) isIdle() bool {
	e := c.lastEvent()
	return e.What == "" || e.What == freed || e.What == gaveUp
}

func (c *client) lastEvent() event {
	events := c.b.all()
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Who == c.name {
			return events[i]
		}
	}
	return event{}
}

func (c *client) note(w what, text string) {
	c.b.add(event{Who: c.name, Lock: c.lock, What: w, Fence: c.fence, Text: text})
}

// acquire asks for a lock and waits for the answer.
func (c *client) acquire(lock string, wait time.Duration) answer {
	return <-c.begin(lock, wait)
}

// begin asks for a lock. The channel receives the answer.
func (c *client) begin(lock string, wait time.Duration) <-chan answer {
	c.lock, c.fence = lock, ""
	c.worker.mu.Lock()
	c.unasked = func(a answer) { c.heard(lock, a) }
	c.worker.mu.Unlock()
	c.note(waits, "")
	answered := make(chan answer, 1)
	go func() {
		r := request{"acquire", lock, c.b.ttl.Milliseconds(), wait.Milliseconds()}
		a := c.ask(r, wait+workerAnswer, "held", "not_held")
		switch a.Event {
		case "held":
			c.fence = a.Fence
			c.note(holds, "")
		case "not_held":
			c.note(gaveUp, "")
		default:
			c.note(failed, a.Event+" "+a.Text)
		}
		answered <- a
	}()
	return answered
}

// heard notes what the worker says unasked. Only "lost" has a meaning then.
func (c *client) heard(lock string, a answer) {
	e := event{Who: c.name, Lock: lock, What: failed, Text: "unasked " + a.Event + " " + a.Text}
	if a.Event == "lost" {
		e.What, e.Text = loses, "(the library says so)"
	}
	c.b.add(e)
}

// hold acquires a lock that must be free, or gives the row up.
func (c *client) hold(lock string) {
	if a := c.acquire(lock, c.b.sys.freesWithin()); a.Event != "held" {
		c.b.giveUp("%s could not acquire a free lock: %s %s", c.name, a.Event, a.Text)
	}
}

// insist acquires through errors, such as those of a server that has just restarted.
func (c *client) insist(lock string, wait time.Duration) answer {
	for deadline := time.Now().Add(wait); ; {
		a := c.acquire(lock, time.Until(deadline))
		if a.Event != "error" || time.Until(deadline) < time.Second {
			return a
		}
		pause(300 * time.Millisecond)
	}
}

// lost reports whether the library has said that the lock is gone.
func (c *client) lost() bool {
	gone := false
	for _, e := range c.b.all() {
		if e.Who == c.name && (e.What == loses || e.What == holds) {
			gone = e.What == loses
		}
	}
	return gone
}

// check asks the library whether the client holds the lock: "held", "lost", or no such answer.
func (c *client) check() string {
	if c.lost() {
		return "lost"
	}
	a := c.ask(request{Do: "check"}, workerAnswer, "held", "lost")
	switch last := c.lastEvent(); {
	case a.Event == "lost":
		c.note(loses, "(asked)")
	case a.Event != "held":
		c.note(failed, a.Event+" "+a.Text)
	case last.What != believed: // a line for each time that it says so would hide the others
		c.note(believed, "")
	}
	return a.Event
}

// believes returns for how long the client goes on to say that it holds the lock, up to a limit.
func (c *client) believes(limit time.Duration) time.Duration {
	began := time.Now()
	for c.check() == "held" && time.Since(began) < limit {
		pause(200 * time.Millisecond)
	}
	return min(time.Since(began), limit)
}

// write writes to the resource for the client, and returns whether the check of the fence rejects
// it. Both copies of the register have it in the history.
func (c *client) write() (rejected bool) {
	kind := writes
	if newestHolder(c.b.all(), c.lock) != c.name {
		kind = stale
	}
	rejected = c.b.register.write(c.lock, c.fence)
	text := "(accepted)"
	switch {
	case rejected:
		text = "(rejected by the check of the fence, accepted without it)"
	case c.fence == "":
		text = "(accepted: there is no fence to check)"
	}
	c.note(kind, text)
	return rejected
}

func (c *client) release() answer {
	c.note(releases, "")
	a := c.ask(request{Do: "release"}, workerAnswer, "released", "lost")
	if a.Event == "released" {
		c.note(freed, "")
	} else {
		c.note(failed, "on release: "+a.Event+" "+a.Text)
	}
	return a
}

func (c *client) stop() {
	c.note(stopped, "(SIGSTOP)")
	c.signal(syscall.SIGSTOP)
}

func (c *client) resume() {
	c.signal(syscall.SIGCONT)
	c.note(resumed, "(SIGCONT)")
}

func (c *client) die() {
	c.note(killed, "(SIGKILL)")
	c.kill()
}

// fault notes a fault that is not of one client.
func (b *bench) fault(format string, args ...any) {
	b.add(event{What: fault, Text: fmt.Sprintf(format, args...)})
}

// seconds writes a time for people.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}
