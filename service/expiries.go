package service

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
)

// Bounds on how often the replica asks the store when a lease ends. Only people read the answers.
const (
	askedPerLook    = 10  // store reads for one look at a lock, however many holders
	askedPerRefusal = 3   // store reads for one refused request, however many locks
	askedForPages   = 100 // store reads a second, for all pages of lists
	askedPerPage    = 40  // store reads for one page
	pageAskTimeout  = 50 * time.Millisecond
	pageAskers      = 8                // concurrent reads for pages
	expiryFresh     = time.Second      // how long looks share one answer
	rowExpiryFresh  = 2 * time.Second  // the same for a row of a list
	expiryKept      = 10 * time.Second // how long pages use an answer at most
	maxExpiries     = 4096             // kept answers
	expiryJitter    = time.Second      // the precision of a store that counts seconds
)

// expiries keeps the ends of leases, and shares reads between requests that arrive together.
// However many requests look, the replica asks the store once a second for each entry on the
// screen.
type expiries struct {
	asks     singleflight.Group
	forPages *rate.Limiter

	mu          sync.Mutex
	newer, last map[expiryKey]expiry // newer becomes last when it is full or old
	began       time.Time            // start of newer
}

type expiryKey struct {
	id     lock.ID
	number uint64
}

type expiry struct {
	asked time.Time
	until time.Time // zero if the store did not answer
}

// remainingFunc asks the store how long an entry's lease will last.
type remainingFunc func(context.Context, *lock.Entry) (time.Duration, error)

func newExpiries() *expiries {
	return &expiries{forPages: rate.NewLimiter(askedForPages, askedPerPage)}
}

// of returns the end of the entry's lease, or zero if it is unknown.
func (x *expiries) of(ctx context.Context, e *lock.Entry, remaining remainingFunc) time.Time {
	if known := x.recall(e); time.Since(known.asked) < expiryFresh {
		return known.until
	}
	return x.ask(context.WithoutCancel(ctx), e, askTimeout, remaining)
}

func (x *expiries) ask(
	ctx context.Context, e *lock.Entry, timeout time.Duration, remaining remainingFunc,
) time.Time {
	key := string(e.ID) + strconv.FormatUint(e.Number, 10)
	until, _, _ := x.asks.Do(key, func() (any, error) { // the function returns no error
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		known := expiry{asked: time.Now()}
		if left, err := remaining(ctx, e); err == nil {
			known.until = known.asked.Add(left)
		}
		return x.keep(e, known), nil
	})
	return until.(time.Time)
}

// ofRows adds to each line the end of its first holder's lease, where known. It asks the store
// for the lines with the oldest answers, for a bounded time. The next page gets the rest.
func (x *expiries) ofRows(ctx context.Context, lines []lists.Line, remaining remainingFunc) {
	ctx, cancel := context.WithTimeout(ctx, pageAskTimeout)
	defer cancel()
	var asks errgroup.Group
	asks.SetLimit(pageAskers)
	for _, e := range x.stale(lines, time.Now()) {
		if ctx.Err() != nil || !x.forPages.Allow() {
			break
		}
		asks.Go(func() error {
			x.ask(ctx, e, pageAskTimeout, remaining)
			return nil
		})
	}
	_ = asks.Wait() // no task returns an error
	for i := range lines {
		if e := lines[i].Holder(); e != nil {
			if known := x.recall(e); known.until.After(time.Now()) {
				lines[i].ExpiresAt = known.until
			}
		}
	}
}

// stale returns the first holders whose answers are oldest, in that order.
func (x *expiries) stale(lines []lists.Line, now time.Time) (ask []*lock.Entry) {
	asked := map[*lock.Entry]time.Time{}
	for i := range lines {
		e := lines[i].Holder()
		if e == nil {
			continue
		}
		if known := x.recall(e); now.Sub(known.asked) >= rowExpiryFresh {
			asked[e] = known.asked
			ask = append(ask, e)
		}
	}
	slices.SortStableFunc(ask, func(a, b *lock.Entry) int { return asked[a].Compare(asked[b]) })
	return ask[:min(len(ask), askedPerPage)]
}

func (x *expiries) recall(e *lock.Entry) expiry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known(expiryKey{e.ID, e.Number})
}

// known returns the kept answer, or zero. The caller holds mu.
func (x *expiries) known(key expiryKey) expiry {
	if known, ok := x.newer[key]; ok {
		return known
	}
	return x.last[key]
}

// keep stores an answer and returns the end of the lease. If there is no answer, or it differs by
// the store's precision only, keep returns the earlier end. So a page stays the same.
func (x *expiries) keep(e *lock.Entry, known expiry) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := expiryKey{e.ID, e.Number}
	before := x.known(key).until
	if known.until.IsZero() || known.until.Sub(before).Abs() < expiryJitter {
		known.until = before
	}
	now := known.asked
	if x.newer == nil || len(x.newer) >= maxExpiries/2 || now.Sub(x.began) >= expiryKept/2 {
		x.newer, x.last, x.began = map[expiryKey]expiry{}, x.newer, now
	}
	x.newer[key] = known
	return known.until
}
