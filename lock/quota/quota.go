// Package quota is how much each tenant may use: the limits by their names, what they are
// without further ado, and what is said to who asks for more. It counts nothing itself.
package quota

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Limit is one of the things of which a tenant may use so much.
type Limit int

// The limits.
const (
	HeldLocks       Limit = iota // locks that are held; of a set each, of a semaphore each holder
	Waiting                      // entries that wait; a set is one
	WaitingPerLock               // entries that wait for one lock
	Sets                         // sets, held or waiting
	Places                       // in queues: of each entry, held or waiting, one for each of its locks
	MetadataBytes                // of metadata, keys and values, of holders that are named, and of callbacks' URLs, of all entries
	AsyncRenewals                // a second, that async entries need while they wait
	Webhooks                     // subscriptions
	EventStreams                 // at a replica
	Requests                     // a second, at a replica: all that have no limit of their own, by their price
	Renewals                     // likewise: renewals, and asking for an entry with its token
	Releases                     // likewise
	WebhookAttempts              // likewise, to tell webhooks and callbacks; what is more waits, and is not refused

	Count // of limits
)

// Limits are a tenant's numbers, by [Limit].
type Limits [Count]int

// rule is what holds for a limit everywhere.
type rule struct {
	name     string // in the API, in files and in metrics
	standard int    // without a flag
	most     int    // that it may be set to
	what     string // is limited, for people
}

// rules is the one table of limits.
func rules() [Count]rule {
	const entries, rate = 10_000_000, 1_000_000
	return [Count]rule{
		HeldLocks:      {"held_locks", 200_000, entries, "locks that may be held"},
		Waiting:        {"waiting", 200_000, entries, "entries that may wait"},
		WaitingPerLock: {"waiting_per_lock", 100_000, entries, "entries that may wait for one lock"},
		Sets:           {"sets", 100_000, entries, "sets that may be held or wait"},
		Places:         {"places", 200_000, entries, "places in queues that entries may take, each one for each of its locks"},
		MetadataBytes:  {"metadata_bytes", 64 << 20, 1 << 30, "bytes of metadata, named holders and callback URLs that entries may have together"},
		AsyncRenewals:  {"async_renewals_per_second", 1250, rate, "renewals a second that async entries may need while they wait"},
		Webhooks:       {"webhooks", 100, 1000, "webhooks that there may be"},
		EventStreams:   {"event_streams", 100, 2000, "event streams that may be open at a replica"},
		Requests:       {"requests_per_second", 50_000, rate, "requests a second that a replica takes, besides renewals and releases"},
		Renewals:       {"renewals_per_second", 50_000, rate, "renewals a second that a replica takes"},
		Releases:       {"releases_per_second", 50_000, rate, "releases a second that a replica takes"},

		WebhookAttempts: {"webhook_attempts_per_second", 500, rate, "attempts a second that a replica makes to tell webhooks and callbacks"},
	}
}

// All returns the limits in their order.
func All() []Limit {
	all := make([]Limit, Count)
	for i := range all {
		all[i] = Limit(i)
	}
	return all
}

// Rates returns those that count what happens at a replica in a second.
func Rates() []Limit { return All()[Requests:] }

// String is the name in the API, in files and in metrics.
func (l Limit) String() string { return rules()[l].name }

// Most is the greatest number that the limit may be set to; the least is 0.
func (l Limit) Most() int { return rules()[l].most }

// What says what is limited, for people: a phrase after "how many".
func (l Limit) What() string { return rules()[l].what }

// Standard are the limits of a tenant if nobody says otherwise.
func Standard() *Limits {
	out := new(Limits)
	for i, r := range rules() {
		out[i] = r.standard
	}
	return out
}

// Check returns what is wrong with a number for the limit, as a phrase, "" if nothing is.
func (l Limit) Check(n int) string {
	if n < 0 || n > l.Most() {
		return fmt.Sprintf("must be between 0 and %d", l.Most())
	}
	return ""
}

// Exceeded is what is said to who asks for more than the limit. used counts without him.
func (ls *Limits) Exceeded(l Limit, used int) *lock.Error {
	return &lock.Error{
		Code: lock.QuotaExceeded, RetryAfter: time.Second, Detail: fmt.Sprintf("the tenant's quota %s is %d, and %d are in use", l, ls[l], used),
		Quota: &lock.Exceeded{Name: l.String(), Limit: ls[l], Used: used},
	}
}

// TooFast is what is said to who asks more often than the limit of a rate. used is how much of its
// second's worth is, more than all if something costly was asked for. after is when there is room again.
func (ls *Limits) TooFast(l Limit, used int, after time.Duration) *lock.Error {
	return &lock.Error{
		Code: lock.RateLimited, RetryAfter: after, Detail: fmt.Sprintf("the tenant's quota %s is %d at each replica, and used up", l, ls[l]),
		Quota: &lock.Exceeded{Name: l.String(), Limit: ls[l], Used: used},
	}
}
