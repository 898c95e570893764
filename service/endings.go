package service

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Reasons are kept for at least 10 minutes and at most 11, in generations that are
// dropped whole: an entry then costs its id and a byte, and no timer.
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
	if why == lock.Withdrawn || e.reason(id, now) != "" {
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
func (e *endings) reason(id lock.ID, now time.Time) lock.Reason {
	key := [idSize]byte(decodeID(id))
	for i := len(e.generations) - 1; i >= 0 && !e.generations[i].over(now); i-- {
		if why, ok := e.generations[i].reasons[key]; ok {
			return why
		}
	}
	return ""
}

func (e *endings) forget(now time.Time) {
	for e.generations[0].over(now) {
		e.generations = slices.Delete(e.generations, 0, 1)
	}
}

func (g generation) over(now time.Time) bool {
	return now.Sub(g.began) > generationsKept*generationLength
}
