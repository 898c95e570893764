// Package waits says by brute force who holds, who waits and who would wait for
// ever. It is the model that the service's answers to named holders are held
// against, and shares nothing with the service.
package waits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Claim is what a request asks of one lock.
type Claim struct {
	Name  string `json:"name"`
	Mode  string `json:"mode"`
	Limit int    `json:"limit,omitempty"`
}

// Request is one acquisition of one or several locks.
type Request struct {
	ID     int
	Holder string // "" if it does not name one
	Claims []Claim
}

// World is the requests of one tenant that hold or wait, in the order in which
// they came. A World is never changed; its methods return another.
type World struct{ entries []*Request }

// Verdict is what becomes of a request when it comes.
type Verdict string

// The verdicts.
const (
	Granted  Verdict = "granted"
	Waits    Verdict = "waits"
	Deadlock Verdict = "deadlock"
)

// Come lets a request come that is willing to wait. One that is refused for a
// deadlock leaves the world as it was.
func (w World) Come(r *Request) (World, Verdict) {
	next := World{append(slices.Clone(w.entries), r)}
	switch {
	case next.Holds(r):
		return next, Granted
	case len(next.Stuck()) > 0:
		return w, Deadlock
	}
	return next, Waits
}

// Go lets a request go, by whatever way.
func (w World) Go(id int) World {
	return World{slices.DeleteFunc(slices.Clone(w.entries), func(r *Request) bool { return r.ID == id })}
}

// Has reports whether the request holds or waits.
func (w World) Has(id int) (r *Request, holds bool) {
	i := slices.IndexFunc(w.entries, func(r *Request) bool { return r.ID == id })
	if i < 0 {
		return nil, false
	}
	return w.entries[i], w.Holds(w.entries[i])
}

// Holds reports whether the request is among the first in each of its queues who
// tolerate each other.
func (w World) Holds(r *Request) bool {
	return !slices.ContainsFunc(r.Claims, func(c Claim) bool { return !slices.Contains(w.front(c.Name), r) })
}

// front returns the longest run from the head of a lock's queue in which everyone
// tolerates all before it.
func (w World) front(name string) []*Request {
	var front []*Request
	for _, r := range w.entries {
		c, ok := r.on(name)
		if !ok {
			continue
		}
		for _, before := range front {
			other, _ := before.on(name)
			if c.Mode == "exclusive" || c.Mode != other.Mode {
				return front
			}
		}
		if c.Mode == "semaphore" && len(front) >= c.Limit {
			return front
		}
		front = append(front, r)
	}
	return front
}

func (r *Request) on(name string) (Claim, bool) {
	for _, c := range r.Claims {
		if c.Name == name {
			return c, true
		}
	}
	return Claim{}, false
}

// Stuck returns who is left when everyone who holds, and waits for nothing under
// its name, lets go, and so on until nobody can.
func (w World) Stuck() []*Request {
	for {
		i := slices.IndexFunc(w.entries, func(r *Request) bool { return w.Holds(r) && !w.waits(r.Holder) })
		if i < 0 {
			return w.entries
		}
		w = w.Go(w.entries[i].ID)
	}
}

func (w World) waits(holder string) bool {
	return holder != "" && slices.ContainsFunc(w.entries, func(r *Request) bool { return r.Holder == holder && !w.Holds(r) })
}

// Queue returns who holds a lock, or waits where it is, in order. One that holds
// this lock and waits for another one waits.
func (w World) Queue(name string) (holders, waiters []int) {
	for _, r := range w.entries {
		if _, ok := r.on(name); !ok {
			continue
		}
		if w.Holds(r) {
			holders = append(holders, r.ID)
		} else {
			waiters = append(waiters, r.ID)
		}
	}
	return holders, waiters
}

// Order tells who stands where in the queues. Worlds in which it is the same are
// the same: the order of requests that meet nowhere does not matter.
func (w World) Order() string {
	queues := map[string][]string{}
	for _, r := range w.entries {
		for _, c := range r.Claims {
			queues[c.Name] = append(queues[c.Name], strconv.Itoa(r.ID))
		}
	}
	return fmt.Sprint(queues)
}

// String tells who holds and who waits.
func (w World) String() string {
	var lines []string
	for _, r := range w.entries {
		lines = append(lines, fmt.Sprintf("%d by %q: %v, holds %t", r.ID, r.Holder, r.Claims, w.Holds(r)))
	}
	return strings.Join(lines, "\n")
}
