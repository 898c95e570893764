package client

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
)

// Modes of a lock.
const (
	Exclusive = "exclusive"
	Shared    = "shared"
	Semaphore = "semaphore"
)

// Options say how to acquire. The zero value is an exclusive lock with a TTL of 30 s, for which
// the call waits up to a minute.
type Options struct {
	// TTL is the lease: how long a dead holder blocks the lock. 30 s by default, 2 s at least.
	TTL time.Duration
	// Wait is how long to queue at most; a minute by default. [Client.TryLock] does not queue.
	Wait time.Duration
	// Mode is Exclusive by default. A set has modes of its own.
	Mode string
	// Limit of a semaphore: how many may hold at once.
	Limit int
	// Holder names this worker, for people; the bearer token's sub by default. Deadlocks are
	// detected among holders with a name.
	Holder string
	// Metadata are shown with the lock: up to 16 pairs, 2 KiB in all.
	Metadata map[string]string
	// RequestRelease asks the holder to finish within this time, if the call has to wait.
	RequestRelease time.Duration
	// Margin is how long before the end of the lease the work has to stop: a tenth of the TTL by
	// default, and at least 250 ms. It covers the time from a check to the effect of a write, and
	// clocks that differ in speed.
	Margin time.Duration
	// OnReleaseRequested is called, while the lock is held, when a waiter asks the holder to
	// finish; once for each that is the first to ask. Nothing is taken away.
	OnReleaseRequested func(api.ReleaseRequested)
}

const (
	defaultTTL  = 30 * time.Second
	defaultWait = time.Minute
	leastMargin = 250 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	return o
}

// margin is at most half of the lease, so that a renewal fits before the deadline.
func (o Options) margin(ttl time.Duration) time.Duration {
	margin := o.Margin
	if margin == 0 {
		margin = max(ttl/10, leastMargin)
	}
	return min(margin, ttl/2)
}

// terms are what the server is sent of the options.
func (o Options) terms() api.Terms {
	t := api.Terms{TTLSeconds: seconds(o.TTL)}
	if o.Wait > 0 {
		t.WaitSeconds = seconds(o.Wait)
	}
	if o.Holder != "" {
		t.Holder = &o.Holder
	}
	for k, v := range o.Metadata {
		if t.Metadata == nil {
			t.Metadata = make(map[string]*string, len(o.Metadata))
		}
		t.Metadata[k] = &v
	}
	if o.RequestRelease > 0 && o.Wait > 0 {
		t.RequestRelease = &api.ReleaseWish{WithinSeconds: seconds(o.RequestRelease)}
	}
	return t
}

func seconds(d time.Duration) *api.Decimal {
	text := api.Decimal(strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
	return &text
}

// Claim is one lock of a set. Mode and Limit are as in [Options].
type Claim struct {
	Name  string
	Mode  string
	Limit int
}

func orNil(mode string) *string {
	if mode == "" || mode == Exclusive {
		return nil
	}
	return &mode
}

func limitOf(limit int) *api.Whole {
	if limit == 0 {
		return nil
	}
	whole := api.Whole(limit)
	return &whole
}

// target is what is acquired: a lock or a set.
type target struct {
	name string // of the lock; of a set all names
	set  bool
}

func targetOf(names []string, set bool) target {
	return target{strings.Join(slices.Sorted(slices.Values(names)), ","), set}
}

func (t target) acquirePath() string {
	if t.set {
		return "/locksets"
	}
	return "/locks/" + escape(t.name)
}

// entryPath is where the entry with the id is waited for.
func (t target) entryPath(id string) string {
	if t.set {
		return "/locksets/" + id
	}
	return t.acquirePath() + "/entries/" + id
}

// heldPath is where the entry with the id is released, and with /renew renewed.
func (t target) heldPath(id string) string {
	if t.set {
		return "/locksets/" + id
	}
	return t.acquirePath()
}
