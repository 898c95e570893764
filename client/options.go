package client

import (
	"cmp"
	"net/url"
	"slices"
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

const (
	defaultTTL  = 30 * time.Second
	defaultWait = time.Minute
	leastMargin = 250 * time.Millisecond

	defaultRetryFor = 30 * time.Second
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
	// Limit of a semaphore: how many permits there are, as this request sees it.
	Limit int
	// Permits is how many of them to take; 1 by default.
	Permits int
	// OnlyNewest gives up a wait once a later request with OnlyNewest waits for the lock: the
	// error then has the code superseded.
	OnlyNewest bool
	// Holder names this worker, for people; the bearer token's sub by default. The server detects
	// deadlocks among holders with a name.
	Holder string
	// Metadata are shown with the lock: up to 16 pairs, 2 KiB in all.
	Metadata map[string]string
	// RequestRelease asks the holder to finish within this time, if the call has to wait.
	RequestRelease time.Duration
	// Margin is how long before the end of the lease the work has to stop: a tenth of the TTL by
	// default, and at least 250 ms. It covers the time from a check to the effect of a write, and
	// clocks that differ in speed.
	Margin time.Duration
	// AtLeast is how long to keep the lock from its grant on, although the work may end sooner.
	// [Held.Release] then returns at once, and the client renews the lock until that time and
	// releases it. If the client is closed before, the lock expires with its TTL: a TTL of AtLeast or
	// more covers that.
	AtLeast time.Duration
	// OnReleaseRequested is called, while the lock is held, when a waiter asks the holder to
	// finish; once for each that is the first to ask. Nothing is taken away.
	OnReleaseRequested func(api.ReleaseRequested)
}

// Claim is one lock of a set. Mode, Limit and Permits are as in [Options].
type Claim struct {
	Name    string `json:"name"`
	Mode    string `json:"mode,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Permits int    `json:"permits,omitempty"`
}

func (o Options) withDefaults() Options {
	o.TTL, o.Wait = cmp.Or(o.TTL, defaultTTL), cmp.Or(o.Wait, defaultWait)
	return o
}

// check refuses what no server would read as it was meant.
func (o Options) check() error {
	if min(o.TTL, o.Wait, o.RequestRelease, o.Margin, o.AtLeast) < 0 || min(o.Limit, o.Permits) < 0 {
		return invalid("durations, Limit and Permits may not be negative")
	}
	return nil
}

func (o Options) withoutWait() Options {
	o = o.withDefaults()
	o.Wait = 0
	return o
}

// margin is at most half of the lease, so that a renewal fits before the deadline.
func (o Options) margin(ttl time.Duration) time.Duration {
	return min(cmp.Or(o.Margin, max(ttl/10, leastMargin)), ttl/2)
}

// body is what an acquire sends.
type body struct {
	Locks          []Claim           `json:"locks,omitempty"`
	Any            int               `json:"any,omitempty"`
	Mode           string            `json:"mode,omitempty"`
	Limit          int               `json:"limit,omitempty"`
	Permits        int               `json:"permits,omitempty"`
	OnlyNewest     bool              `json:"only_newest,omitempty"`
	TTL            float64           `json:"ttl_seconds"`
	Wait           float64           `json:"wait_seconds,omitempty"`
	Async          bool              `json:"async,omitempty"`
	CallbackURL    string            `json:"callback_url,omitempty"`
	RequestRelease *wish             `json:"request_release,omitempty"`
	Holder         string            `json:"holder,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
}

type wish struct {
	Within float64 `json:"within_seconds"`
}

func (o Options) body(t target) *body {
	b := &body{
		Locks: t.claims, Any: t.any, Mode: o.Mode, Limit: o.Limit, Permits: o.Permits,
		OnlyNewest: o.OnlyNewest, TTL: o.TTL.Seconds(), Wait: o.Wait.Seconds(),
		Holder: o.Holder, Metadata: o.Metadata,
	}
	if t.claims != nil {
		b.Mode, b.Limit, b.Permits = "", 0, 0
	}
	if o.RequestRelease > 0 && o.Wait > 0 {
		b.RequestRelease = &wish{o.RequestRelease.Seconds()}
	}
	return b
}

// target is what is acquired: a lock, or a set if it has claims.
type target struct {
	name   string // of a set, all names
	claims []Claim
	any    int // of the claims suffice; 0 is all
}

func anyOf(claims []Claim, k int) target {
	of := setOf(claims)
	of.any = cmp.Or(k, 1)
	return of
}

func setOf(claims []Claim) target {
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	return target{name: strings.Join(names, ","), claims: claims}
}

// path is where the lock or set is acquired.
func (t target) path() string {
	if t.claims != nil {
		return "/locksets"
	}
	return "/locks/" + url.PathEscape(t.name)
}

// entryPath is where the entry with the id is waited for.
func (t target) entryPath(id string) string {
	if t.claims != nil {
		return "/locksets/" + url.PathEscape(id)
	}
	return t.path() + "/entries/" + url.PathEscape(id)
}

// heldPath is where the entry with the id is released, and with /renew renewed.
func (t target) heldPath(id string) string {
	if t.claims != nil {
		return "/locksets/" + url.PathEscape(id)
	}
	return t.path()
}
