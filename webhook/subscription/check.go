package subscription

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

// AllEvents stands for every kind of event, also those that come to be later.
const AllEvents = "*"

// Missed is the kind of the event that says that others are missing. It always comes.
const Missed = "events.missed"

// allLocks is the pattern of a subscription that names none.
const allLocks = "*"

// Change is what a client says of a subscription; nil is not said.
type Change struct {
	URL    *string
	Events []string // kinds, or [AllEvents]; [Missed] may be there and says nothing
	Locks  *string
	Paused *bool

	Description *string // up to [lock.MaxDescription] characters; "" is none
}

// empty reports whether nothing is said.
func (c *Change) empty() bool {
	return c.URL == nil && c.Events == nil && c.Locks == nil && c.Paused == nil && c.Description == nil
}

// apply changes s, on behalf of whoever asks now. Its errors are [lock.InvalidRequest] and
// name the field.
func (c *Change) apply(s *Subscription, policy *webhook.Policy, who *auth.Principal, now time.Time) (err error) {
	if c.URL != nil {
		if err := policy.CheckURL("url", *c.URL); err != nil {
			return err
		}
		s.URL = *c.URL
	}
	if c.Events != nil {
		if s.Events, err = kindsOf(c.Events); err != nil {
			return err
		}
	}
	if c.Locks != nil {
		was := s.Locks
		if s.Locks, s.Within, err = patternOf(*c.Locks, who); err != nil {
			return err
		}
		s.narrow(was, now)
	}
	if c.Description != nil {
		if wrong := lock.CheckDescription(*c.Description); wrong != "" {
			return lock.Invalid("description", "%s", wrong)
		}
		s.Description = *c.Description
	}
	if c.Paused != nil {
		if s.Paused = *c.Paused; !s.Paused {
			s.Enabled++ // it may have been disabled
		}
	}
	return nil
}

// kindsOf reads which events are wanted. None of ours is left if only [Missed] is.
func kindsOf(names []string) ([]lock.EventKind, error) {
	if len(names) == 0 {
		return nil, lock.Invalid("events", "must not be empty; %q is all", AllEvents)
	}
	kinds, all := []lock.EventKind{}, false
	for i, name := range names {
		kind := lock.EventKind(name)
		switch {
		case name == AllEvents:
			all = true
		case name == Missed || slices.Contains(kinds, kind):
		case slices.Contains(lock.EventKinds(), kind):
			kinds = append(kinds, kind)
		default:
			return nil, lock.Invalid("events", "must be types of events, or %q; number %d is none of %s, %s", AllEvents, i+1, lock.EventKindNames(), Missed)
		}
	}
	if all {
		return nil, nil
	}
	return kinds, nil
}

// patternOf reads which locks are wanted, and returns which patterns of the bearer token
// allow that; nil if it is limited to none.
func patternOf(text string, who *auth.Principal) (pattern string, within []string, err error) {
	p, err := auth.ParseNamePattern(text)
	if err != nil {
		return "", nil, lock.Invalid("locks", "must be a pattern of lock names, with at most one star")
	}
	if who.Locks == nil {
		return text, nil, nil
	}
	for _, allowed := range who.Locks {
		if allowed.Covers(p) {
			return text, []string{allowed.String()}, nil
		}
	}
	return "", nil, lock.Invalid("locks", "must select only names that the caller is limited to")
}

// owedFor is for how long a subscription may be owed something about names that it selects no longer: for as
// long as what it is owed is kept, and a day more, for clocks that differ.
const owedFor = 6 * 24 * time.Hour

// narrow has the subscription remember which names it selected until now.
func (s *Subscription) narrow(was string, now time.Time) {
	if was == "" || covers(s.Locks, was) {
		return
	}
	switch {
	case !s.mayOweOthers(now), covers(was, s.Was):
		s.Was = was
	case !covers(s.Was, was):
		s.Was = allLocks
	}
	s.Narrowed = now.UTC().Truncate(time.Millisecond)
}

// mayOweOthers reports whether the subscription may still be owed something about names that only Was selects.
func (s *Subscription) mayOweOthers(now time.Time) bool {
	return s.Was != "" && now.Sub(s.Narrowed) < owedFor
}

// covers reports whether a pattern selects all that the other one does.
func covers(one, other string) bool {
	p, bad := auth.ParsePattern(one)
	of, worse := auth.ParsePattern(other)
	return bad == nil && worse == nil && p.Covers(of)
}

// may reports whether who asks may see and change the subscription: one that is limited to
// some names may not have to do with one that is told of others, or is still owed what it was to be told of them:
// who changes the URL has that sent there.
func may(who *auth.Principal, s *Subscription, now time.Time) bool {
	if who.Locks == nil {
		return true
	}
	all := []string{s.Locks}
	if s.mayOweOthers(now) {
		all = append(all, s.Was)
	}
	return !slices.ContainsFunc(all, func(text string) bool {
		p, err := auth.ParsePattern(text)
		return err != nil || !who.MayUseAll(p)
	})
}
