package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Grant is one cycle on a lock as its client saw it. Times count from the start
// of the load on one monotonic clock.
type Grant struct {
	Worker int
	Fence  int64
	// Sent is just before the request to acquire, Granted just after its answer,
	// Released just before the request to release.
	Sent, Granted, Released time.Duration
}

// History is the grants of one lock that was never left alone: every grant was
// released and every request was granted.
type History []Grant

// most violations that an error lists
const mostViolations = 5

// ordered returns the grants in the order in which clients got them.
func (h History) ordered() History {
	return slices.SortedFunc(
		slices.Values(h), func(a, b Grant) int { return int(a.Granted - b.Granted) },
	)
}

// CheckExclusion returns an error if a client learnt of its grant before the holder ahead of it
// had sent its release.
func (h History) CheckExclusion() error {
	var errs []error
	o := h.ordered()
	for i := 1; i < len(o); i++ {
		if o[i].Granted < o[i-1].Released {
			errs = append(errs, fmt.Errorf("worker %d got the lock at %v, worker %d held it until %v",
				o[i].Worker, o[i].Granted, o[i-1].Worker, o[i-1].Released))
		}
	}
	return few("exclusion", errs)
}

// CheckFences says whether each grant's fence is above the one before it. As
// the fence is the place in the queue, this is also the order of the queue.
func (h History) CheckFences() error {
	var errs []error
	o := h.ordered()
	for i := 1; i < len(o); i++ {
		if o[i].Fence <= o[i-1].Fence {
			errs = append(errs, fmt.Errorf("fence %d after fence %d", o[i].Fence, o[i-1].Fence))
		}
	}
	return few("fences", errs)
}

// CheckFair says whether the queue was first in, first out as far as clients
// can see without looking at fences: a request is never granted before one that
// was sent earlier. Requests whose sendings lie at most onTheWay apart may have
// reached the queue in the other order.
func (h History) CheckFair(onTheWay time.Duration) error {
	var errs []error
	var latest Grant // the one sent last among those granted so far
	for i, g := range h.ordered() {
		if i > 0 && latest.Sent > g.Sent+onTheWay {
			errs = append(errs, fmt.Errorf(
				"worker %d asked at %v and had to wait until %v, worker %d asked at %v and was granted at %v",
				g.Worker, g.Sent, g.Granted, latest.Worker, latest.Sent, latest.Granted,
			))
		}
		if g.Sent > latest.Sent {
			latest = g
		}
	}
	return few("fairness", errs)
}

// Handovers returns the times from a release being sent to the next client
// having its grant, of the grants that were received at from or later.
func (h History) Handovers(from time.Duration) *Histogram {
	out := NewHistogram()
	o := h.ordered()
	for i := 1; i < len(o); i++ {
		if o[i-1].Granted >= from {
			out.Record(o[i].Granted - o[i-1].Released)
		}
	}
	return out
}

func few(what string, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf(
		"%s violated %d times, first: %w", what, len(errs),
		errors.Join(errs[:min(len(errs), mostViolations)]...),
	)
}
