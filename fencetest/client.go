package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// client is a worker in its role in one row.
type client struct {
	*worker
	b     *bench
	proxy *proxy // nil if the lock has no server
	name  string
	lock  string
	fence string

	reusable bool // by other rows: its clock and its TTL are as usual
}

func (c *client) note(w what, text string) {
	c.b.add(event{Who: c.name, Lock: c.lock, What: w, Fence: c.fence, Text: text})
}

// last returns what the client did last, of these kinds if any are named.
func (c *client) last(kinds ...what) (newest what) {
	for _, e := range c.b.all() {
		if e.Who == c.name && (len(kinds) == 0 || slices.Contains(kinds, e.What)) {
			newest = e.What
		}
	}
	return newest
}

// acquire asks for a lock and waits for the answer.
func (c *client) acquire(lock string, wait time.Duration) answer { return <-c.begin(lock, wait) }

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
			if c.last() != killed {
				c.note(failed, a.Event+" "+a.Text)
			}
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

// insist acquires through errors, such as those of a server that has just started.
func (c *client) insist(lock string, wait time.Duration) answer {
	for deadline := time.Now().Add(wait); ; pause(300 * time.Millisecond) {
		a := c.acquire(lock, time.Until(deadline))
		if a.Event != "error" || time.Until(deadline) < time.Second {
			return a
		}
	}
}

// hold acquires a lock that must be free, or gives the row up.
func (c *client) hold(lock string) {
	if a := c.insist(lock, c.b.sys.freesWithin()); a.Event != "held" {
		c.b.giveUp("%s could not acquire a free lock: %s %s", c.name, a.Event, short(a.Text))
	}
}

// check asks the library whether the client holds the lock: "held", "lost", or no such answer.
func (c *client) check() string {
	if c.last(loses, holds) == loses { // the library has said so
		return "lost"
	}
	a := c.ask(request{Do: "check"}, workerAnswer, "held", "lost")
	switch {
	case a.Event == "lost":
		c.note(loses, "(asked)")
	case a.Event != "held":
		c.note(failed, a.Event+" "+a.Text)
	case c.last() != believed: // a line for each time that it says so would hide the others
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

// learns says for people for how long a client believed.
func learns(believed, limit time.Duration) string {
	switch {
	case believed >= limit:
		return "never learns of its loss"
	case believed >= time.Second:
		return "learns of its loss " + seconds(believed) + " later"
	}
	return "learns of its loss when it asks"
}

// write writes to the resource for the client, and returns whether the check of the fence rejects
// it.
func (c *client) write() (rejected bool) {
	kind, newest := writes, ""
	for _, s := range spans(c.b.all()) {
		if s.lock == c.lock {
			newest = s.who
		}
	}
	if newest != c.name {
		kind = stale
	}
	text := "(accepted)"
	if c.fence == "" {
		text = "(accepted: there is no fence to check)"
	}
	if rejected = c.b.register.write(c.lock, c.fence); rejected {
		text = "(rejected by the check of the fence, accepted without it)"
	}
	c.note(kind, text)
	return rejected
}

func (c *client) release() {
	c.note(releases, "")
	if a := c.ask(request{Do: "release"}, workerAnswer, "released", "lost"); a.Event == "released" {
		c.note(freed, "")
	} else {
		c.note(failed, "on release: "+a.Event+" "+a.Text)
	}
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

// sent returns how many messages the client has sent to its server.
func (c *client) sent() (n int) {
	if c.proxy != nil {
		_, _, n = c.proxy.count()
	}
	return n
}

// queue begins to wait for a lock, and returns when the client has surely joined the queue: a
// second after it sent its request.
func (c *client) queue(lock string, wait time.Duration) <-chan answer {
	before, began := c.sent(), time.Now()
	got := c.begin(lock, wait)
	for c.proxy != nil && c.sent() == before && time.Since(began) < 5*time.Second {
		pause(20 * time.Millisecond)
	}
	pause(time.Second)
	return got
}

// seconds writes a time for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
