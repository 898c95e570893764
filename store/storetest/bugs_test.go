package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// bug is one mistake that a store can have.
type bug string

// The bugs that a memory can have, where it can have them, and what they do.
const (
	// Writing.
	startsOver         bug = "numbers start over when a client opens"
	compactionForgets  bug = "numbers start over when history is forgotten"
	twins              bug = "two entries of a burst share a number"
	numbersPerQueue    bug = "numbers start over when a queue was empty"
	numbersOverflow    bug = "numbers do not fit a double"
	outOfOrder         bug = "a later entry gets a smaller number"
	retryMovesBack     bug = "a retry gets a new number"
	retryOverwrites    bug = "a retry changes the entry"
	retryWrote         bug = "a retry says that it wrote the entry"
	keyUsedTwice       bug = "a used-up key is written again"
	keyCheckedApart    bug = "whether a key is used up is looked at before its entry is looked for"
	keyForgetsExpiry   bug = "an expiry leaves its key free"
	withdrawnUsesUp    bug = "a withdrawal uses its key up"
	keyPerLock         bug = "a key counts for the locks of its entry only"
	retryWritesAgain   bug = "a retry that races writes a second entry"
	metadataLost       bug = "metadata is not stored"
	ttlTruncated       bug = "a TTL loses its fraction"
	setRetriedTwice    bug = "a retry of a set writes it again"
	largeSetCut        bug = "a large set loses locks"
	setInFirstOnly     bug = "a set is in its first queue only"
	setInSteps         bug = "a set comes into its queues one after the other"
	setLeavesInSteps   bug = "a set leaves its queues one after the other"
	setOrderPerQueue   bug = "two sets stand in one order here and in another there"
	setHalfWritten     bug = "half of a set is written when the answer is lost"
	modeLost           bug = "readers are stored as writers"
	limitLost          bug = "the limit of a semaphore is not stored"
	setModesLost       bug = "all locks of a set are stored as exclusive"
	setStays           bug = "a set leaves its first queue only"
	tenantsShareIDs    bug = "an id finds another tenant's entry"
	namesByPrefix      bug = "a queue contains those whose names it begins"
	ignoresContext     bug = "a context that has ended is ignored"
	lateWrite          bug = "a call whose context ended says that it did nothing, and does it"
	alwaysAmbiguous    bug = "a call that did nothing is ambiguous"
	givenUpStays       bug = "an entry that was given up stays"
	neverAmbiguous     bug = "a lost answer is reported as certain"
	bareErrors         bug = "errors are not typed"
	hangs              bug = "a call waits for as long as its context allows"
	brokenCallsSucceed bug = "a call that was cut off reports success"
	distrustIgnored    bug = "distrust is forgotten"
	distrustStaysLocal bug = "distrust does not reach the other client"
	distrustUntold     bug = "a client that refuses to enqueue says that all may be granted"
	distrustStopsAll   bug = "distrust stops refreshes too"

	// Leases and removals.
	expiresEarly        bug = "leases end early"
	neverExpires        bug = "leases do not end"
	setExpiresInPart    bug = "a set expires in its first queue only"
	setExpiryToldTwice  bug = "the expiry of a set is told for each lock"
	expiryLooksReleased bug = "an expiry is told as a release"
	refreshForgets      bug = "a refresh does not extend"
	refreshTrustsLease  bug = "a refresh asks the lease only"
	remainsForEver      bug = "what remains of a lease does not run down"
	remainsWhenGone     bug = "something remains of a removed entry's lease"
	leasesShared        bug = "entries share a lease"
	leaseInherited      bug = "a refresh of a gone entry extends its lease's next user"
	leaseUsedUp         bug = "a lease is used again without starting anew"
	ignoresWhile        bug = "a removal does not look at what it was decided by"
	removesTheHead      bug = "a removal takes the head of the queue"
	removesByID         bug = "a removal takes a later entry with the same id"
	removesForeign      bug = "a removal does not look at the tenant"
	lostIsSuccess       bug = "removing what is gone succeeds"
	lostSpreads         bug = "a removal beside one that is lost is lost too"
	lostIsRemembered    bug = "removing what is gone overwrites why it went"
	lostHasReason       bug = "lost comes with a reason"
	reasonLost          bug = "the feed does not tell the reason"
	endsForgotten       bug = "ends are not remembered"
	withdrawnExpires    bug = "a withdrawal is told as an expiry"
	withdrawnRemembered bug = "a withdrawal is remembered"

	// Reading.
	readsThePast     bug = "the second client's queue is behind"
	emptyIsError     bug = "an empty queue is an error"
	newestIsOld      bug = "the newest number is behind"
	viewLacksNewest  bug = "the first view lacks the newest entry"
	viewIsOnePage    bug = "the first view is one page"
	feedHalvesSets   bug = "a feed tells half of a set"
	feedStops        bug = "a feed stops when history is forgotten"
	lostUntold       bug = "a feed that is cut off does not say so"
	feedStartsEmpty  bug = "a feed does not begin with a view"
	feedSkips        bug = "a feed skips a removal now and then"
	feedRepeats      bug = "a feed repeats a change now and then"
	feedDisordered   bug = "a feed tells changes out of order"
	feedHasSeam      bug = "a feed misses what happens while it lists"
	feedGapUnnoticed bug = "a feed goes on after a gap"
	feedConcurrent   bug = "a feed calls from two goroutines"
	followNeverEnds  bug = "a feed outlives its context"
)

func (m *memory) nextNumber(e *lock.Entry) uint64 {
	switch {
	case m.bug == twins && m.number%7 == 3:
		return m.number
	case m.bug == outOfOrder && m.number > 10 && m.number%10 == 0:
		return m.number - 5
	case m.bug == numbersOverflow:
		return m.number + 1<<53
	case m.bug == numbersPerQueue && len(m.inQueue(lock.Ref{Tenant: e.Tenant, Name: e.Name()})) == 0:
		return 1
	}
	return m.number + 1
}

// stored is what is kept of e.
func (m *memory) stored(e *lock.Entry) lock.Entry {
	kept := *e
	switch m.bug {
	case largeSetCut:
		kept.Claims = kept.Claims[:min(len(kept.Claims), 16)]
	case metadataLost:
		kept.Metadata = nil
	case modeLost, limitLost, setModesLost:
		kept.Claims = m.claimsWrongly(e)
	case retryWritesAgain:
		m.mu.Unlock()
		sleep(context.Background(), time.Millisecond) // the window between looking and writing
		m.mu.Lock()
		m.number++
	}
	return kept
}

func (m *memory) claimsWrongly(e *lock.Entry) []lock.Claim {
	claims := slices.Clone(e.Claims)
	for i, c := range claims {
		switch {
		case m.bug == modeLost && c.Mode == lock.Shared, m.bug == setModesLost && e.Set:
			claims[i].Mode, claims[i].Limit = lock.Exclusive, 0
		case m.bug == limitLost && c.Limit > 0:
			claims[i].Limit = 1
		}
	}
	return claims
}

// claims is what is seen of an entry's claims.
func (m *memory) claims(e lock.Entry) []lock.Claim {
	if m.bug == setInFirstOnly || m.bug == setInSteps && time.Since(e.EnqueuedAt) < inSteps {
		return e.Claims[:1]
	}
	return e.Claims
}

// inSteps is how long it takes to get from one queue to the next, for bugs.
const inSteps = 5 * time.Millisecond

// leaveBehind is what stays of an entry that is removed.
func (m *memory) leaveBehind(k *kept) {
	switch {
	case m.bug == leaseUsedUp || m.bug == leaseInherited:
		m.idle = append(m.idle, k.entry.Handle)
	case (m.bug == setStays || m.bug == setLeavesInSteps) && len(k.entry.Claims) > 1:
		rest := *k
		rest.entry.Claims = rest.entry.Claims[1:]
		if m.bug == setLeavesInSteps {
			rest.lease = &lease{end: time.Now().Add(inSteps)}
		}
		m.entries[keyOf(&rest.entry)] = &rest
	case m.bug == readsThePast:
		m.old = append(m.old, &k.entry)
	}
	if m.bug != refreshTrustsLease && m.bug != leaseInherited && m.bug != leaseUsedUp {
		delete(m.leases, k.entry.Handle)
	}
}

// told is what a feed tells of an entry that joined.
func (m *memory) told(e lock.Entry) *lock.Entry {
	if m.bug == feedHalvesSets {
		e.Claims = e.Claims[:(len(e.Claims)+1)/2]
	}
	return &e
}

// reopened and compacted are what happens in a store besides calls: nothing.
func (m *memory) reopened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bug == startsOver {
		m.number = 0
	}
}

func (m *memory) compacted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.bug == compactionForgets && len(m.entries) == 0:
		m.number = 0
	case m.bug == feedStops:
		clear(m.followers)
	}
}

func (m *memory) past(r lock.Ref, now []*lock.Entry) []*lock.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.old); n > 0 && len(now) == 0 {
		return m.old[n-1:]
	}
	return now
}

// grantWrongly returns a lease that the entry should not get, or nil.
func (m *memory) grantWrongly(e *lock.Entry) *lease {
	switch {
	case m.bug == leasesShared:
		for _, k := range m.entries {
			if k.lease.ttl == e.TTL {
				return k.lease
			}
		}
	case len(m.idle) > 0:
		e.Handle = m.idle[len(m.idle)-1]
		m.idle = m.idle[:len(m.idle)-1]
		l := m.leases[e.Handle]
		if l.ttl != e.TTL {
			return nil
		}
		if m.bug == leaseInherited {
			l.end = time.Now().Add(l.ttl)
		}
		return l
	}
	return nil
}

func (m *memory) lifetime(ttl time.Duration) time.Duration {
	switch {
	case m.bug == expiresEarly:
		return ttl * 9 / 10
	case m.bug == ttlTruncated:
		return ttl / minTTL * minTTL
	}
	return ttl
}

// expireWrongly reports whether it has dealt with the entry.
func (m *memory) expireWrongly(k *kept) bool {
	if !k.entry.Set || m.bug != setExpiresInPart && m.bug != setExpiryToldTwice {
		return false
	}
	claims := k.entry.Claims
	m.drop(k, lock.Expired)
	if m.bug == setExpiryToldTwice {
		m.publish(store.Change{Left: k.entry.ID, Reason: lock.Expired})
		return true
	}
	rest := *k
	rest.entry.Claims, rest.lease = claims[1:], &lease{ttl: time.Minute, end: time.Now().Add(time.Minute)}
	m.entries[keyOf(&rest.entry)] = &rest
	return true
}

// misorder swaps neighbours in every queue but a set's first, for a bug.
func (m *memory) misorder(name string, queue []*lock.Entry) {
	for i := 1; m.bug == setOrderPerQueue && i < len(queue); i += 2 {
		if queue[i].Set && queue[i-1].Set && queue[i].Name() != name {
			queue[i], queue[i-1] = queue[i-1], queue[i]
		}
	}
}

func (m *memory) expiryReason() lock.Reason {
	if m.bug == expiryLooksReleased {
		return lock.Released
	}
	return lock.Expired
}

// findWrongly returns an entry that e is not, or nil.
func (m *memory) findWrongly(e *lock.Entry) *kept {
	switch m.bug {
	case removesByID:
		return m.entries[keyOf(e)]
	case removesTheHead:
		if queue := m.inQueue(lock.Ref{Tenant: e.Tenant, Name: e.Name()}); len(queue) > 0 {
			return m.entries[keyOf(queue[0])]
		}
	case removesForeign:
		for k, found := range m.entries {
			if k.id == e.ID && k.Name == e.Name() && found.entry.Number == e.Number {
				return found
			}
		}
	}
	return nil
}

func (m *memory) lost(why lock.Reason) error {
	m.lastLost = time.Now()
	switch {
	case m.bug == lostIsSuccess && why != "":
		return nil
	case m.bug == lostIsRemembered && why != "":
		for i := range m.ended {
			m.ended[i].Reason = why
		}
	case m.bug == lostHasReason:
		return lock.LostBecause(lock.Expired)
	}
	return &lock.Error{Code: lock.Lost}
}

func (m *memory) refuses(c *client) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.distrusted && m.bug != distrustIgnored && (m.bug != distrustStaysLocal || !c.second)
}

// tell adds a run to a follower's.
func (m *memory) tell(s *subscription, r run) {
	switch {
	case m.bug == feedSkips && r.upTo%9 == 0 && r.changes[0].Joined == nil:
		return
	case m.bug == feedRepeats && r.upTo%9 == 0:
		s.add(r)
		r.upTo++
		m.number++
	}
	s.add(r)
}

// disorder is the order in which runs are told.
func (m *memory) disorder(runs []run) []run {
	if n := len(runs); m.bug == feedDisordered && n > 1 {
		runs[n-1], runs[n-2] = runs[n-2], runs[n-1]
	}
	return runs
}

// applyTwice makes harmless calls from two goroutines at once, for a bug.
func (m *memory) applyTwice(f store.Follower, upTo uint64) {
	if m.bug != feedConcurrent {
		return
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 100 {
				f.Apply(upTo, nil)
			}
		})
	}
	both.Wait()
}

// bare takes the type off an error, for a bug.
func (c *client) bare(err error) error {
	if c.m.bug == bareErrors && err != nil {
		return errors.New(err.Error())
	}
	return err
}
