package service

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Reasons are kept for at least 10 minutes, in generations that are dropped
// whole: an entry then costs its id and a byte, and no timer.
const (
	generationLength = time.Minute
	generationsKept  = 11
)

// endings remembers why entries ended. It is not safe for concurrent use.
type endings struct {
	generations []generation // the newest last
}

type generation struct {
	began   time.Time
	reasons map[[idSize]byte]lock.Reason
}

// record remembers a reason. The first one counts: an entry ends once.
func (e *endings) record(id lock.ID, why lock.Reason, now time.Time) {
	if why == lock.Withdrawn || e.reason(id) != "" {
		return
	}
	last := len(e.generations) - 1
	if last < 0 || now.Sub(e.generations[last].began) >= generationLength {
		e.generations = append(e.generations, generation{began: now, reasons: map[[idSize]byte]lock.Reason{}})
		e.forget(now)
		last = len(e.generations) - 1
	}
	e.generations[last].reasons[[idSize]byte(decodeID(id))] = why
}

// reason returns why the entry ended, or "" if it is not known to have.
func (e *endings) reason(id lock.ID) lock.Reason {
	key := [idSize]byte(decodeID(id))
	for i := len(e.generations) - 1; i >= 0; i-- {
		if why, ok := e.generations[i].reasons[key]; ok {
			return why
		}
	}
	return ""
}

func (e *endings) forget(now time.Time) {
	for len(e.generations) > 1 && now.Sub(e.generations[0].began) > generationsKept*generationLength {
		e.generations = e.generations[1:]
	}
}
