// Package quota has the limits of tenants: their names and defaults, the limits that operators set
// for a tenant in the store, and one token bucket per tenant and rate. What is no rate is counted
// where it is used.
package quota

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Limit is one quantity that is limited per tenant.
type Limit int

// The limits. Those from Requests on are rates: per second, at each replica.
const (
	HeldLocks       Limit = iota // held locks; of a set each, of a semaphore each holder
	Waiting                      // waiting entries; a set is one
	WaitingPerLock               // waiting entries of one lock
	Sets                         // sets, held or waiting
	Places                       // positions in queues: of each entry one for each of its locks
	MetadataBytes                // metadata, named holders and callback URLs of all entries
	AsyncRenewals                // renewals per second for async entries that wait
	Webhooks                     // subscriptions
	EventStreams                 // open streams, at a replica
	Requests                     // requests without a rate of their own
	Renewals                     // renewals, and looks at an entry with its token
	Releases                     // releases, and what a tenant's own operator changes
	WebhookAttempts              // attempts to send webhooks and callbacks; more of them wait

	Count // of limits
)

// Limits are a tenant's numbers, by [Limit].
type Limits [Count]int

// rule is what is known of a limit.
type rule struct {
	name     string // in the API, in settings and in metrics
	standard int    // the default
	most     int    // the highest number that can be set
}

const maxEntries, maxRate = 10_000_000, 1_000_000

// rules is the one table of limits.
func rules() [Count]rule {
	return [Count]rule{
		HeldLocks:      {"held_locks", 200_000, maxEntries},
		Waiting:        {"waiting", 200_000, maxEntries},
		WaitingPerLock: {"waiting_per_lock", 100_000, maxEntries},
		Sets:           {"sets", 100_000, maxEntries},
		Places:         {"places", 200_000, maxEntries},
		MetadataBytes:  {"metadata_bytes", 64 << 20, 1 << 30},
		AsyncRenewals:  {"async_renewals_per_second", 1250, maxRate},
		Webhooks:       {"webhooks", 100, 1000},
		EventStreams:   {"event_streams", 100, 2000},
		Requests:       {"requests_per_second", 50_000, maxRate},
		Renewals:       {"renewals_per_second", 50_000, maxRate},
		Releases:       {"releases_per_second", 50_000, maxRate},

		WebhookAttempts: {"webhook_attempts_per_second", 500, maxRate},
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

// Named returns the limit with the name.
func Named(name string) (l Limit, ok bool) {
	for l, r := range rules() {
		if r.name == name {
			return Limit(l), true
		}
	}
	return 0, false
}

// String returns the name in the API, in settings and in metrics.
func (l Limit) String() string { return rules()[l].name }

// Most returns the highest number that can be set; the lowest is 0.
func (l Limit) Most() int { return rules()[l].most }

// Check returns what is wrong with a number for the limit, as a phrase, or "".
func (l Limit) Check(n int) string {
	if n < 0 || n > l.Most() {
		return fmt.Sprintf("must be between 0 and %d", l.Most())
	}
	return ""
}

// Standard returns the limits of a tenant if no setting says otherwise.
func Standard() *Limits {
	out := new(Limits)
	for i, r := range rules() {
		out[i] = r.standard
	}
	return out
}

// Named returns the numbers by the names of their limits.
func (ls *Limits) Named() map[string]int {
	named := make(map[string]int, Count)
	for l, n := range ls {
		named[Limit(l).String()] = n
	}
	return named
}

// Parse sets the limits that a text of the form name=value,… names.
func (ls *Limits) Parse(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		l, ok := Named(strings.TrimSpace(name))
		if !ok {
			return fmt.Errorf("%q is no quota; the quotas are %v", name, All())
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			return fmt.Errorf("%s must be a whole number", l)
		}
		if wrong := l.Check(n); wrong != "" {
			return fmt.Errorf("%s %s", l, wrong)
		}
		ls[l] = n
	}
	return nil
}

// Exceeded returns the error of a request over the limit. used counts without it.
func (ls *Limits) Exceeded(l Limit, used int) *lock.Error {
	return &lock.Error{
		Code: lock.QuotaExceeded, RetryAfter: time.Second,
		Detail: fmt.Sprintf("the tenant's quota %s is %d, and %d are in use; "+
			"release some, or ask for a higher quota", l, ls[l], used),
		Quota: &lock.Exceeded{Name: l.String(), Limit: ls[l], Used: used},
	}
}

// TooFast returns the error of a request over a rate, of whose last second so many are used.
func (ls *Limits) TooFast(l Limit, used int, retryAfter time.Duration) *lock.Error {
	return &lock.Error{
		Code: lock.RateLimited, RetryAfter: retryAfter,
		Detail: fmt.Sprintf("the tenant's quota %s is %d at each replica, and used up; "+
			"retry after Retry-After", l, ls[l]),
		Quota: &lock.Exceeded{Name: l.String(), Limit: ls[l], Used: used},
	}
}
