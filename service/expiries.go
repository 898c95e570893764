package service

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fencepost/fencepost/lock"
)

// How often the store is asked until when a lease lasts, which is for people to
// look at.
const (
	askedPerLook     = 10          // times for one look at a lock, however many hold it
	askedPerRefusal  = 3           // times for one refused request, however many locks it is for
	expiryRemembered = time.Second // for which an answer is good
	maxExpiries      = 4096        // answers that are kept
)

// expiries remembers until when leases last, for a second, and shares the questions
// of requests that come at one time: however often somebody looks, the store is
// asked once a second for each entry that is shown.
type expiries struct {
	asks singleflight.Group

	mu          sync.Mutex
	newer, last map[expiryKey]expiry // newer becomes last when it is full or old
	began       time.Time            // of newer
}

type expiryKey struct {
	id     lock.ID
	number uint64
}

type expiry struct {
	asked time.Time
	until time.Time // zero if the store could not tell
}

// of returns until when the entry's lease lasts, zero if that is not known. remaining
// asks the store.
func (x *expiries) of(ctx context.Context, e *lock.Entry, remaining func(context.Context, *lock.Entry) (time.Duration, error)) time.Time {
	key := expiryKey{e.ID, e.Number}
	if known, ok := x.recall(key, time.Now()); ok {
		return known.until
	}
	until, _, _ := x.asks.Do(string(e.ID)+strconv.FormatUint(e.Number, 10), func() (any, error) { // there is no error
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		known := expiry{asked: time.Now()}
		if left, err := remaining(ctx, e); err == nil {
			known.until = known.asked.Add(left)
		}
		x.remember(key, known, time.Now())
		return known.until, nil
	})
	return until.(time.Time)
}

func (x *expiries) recall(key expiryKey, now time.Time) (expiry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, ok := x.newer[key]
	if !ok {
		known, ok = x.last[key]
	}
	return known, ok && now.Sub(known.asked) < expiryRemembered
}

func (x *expiries) remember(key expiryKey, known expiry, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.newer == nil || len(x.newer) >= maxExpiries/2 || now.Sub(x.began) >= expiryRemembered {
		x.newer, x.last, x.began = map[expiryKey]expiry{}, x.newer, now
	}
	x.newer[key] = known
}
