package subscription

import (
	"slices"

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

// apply changes s on behalf of a client. Its errors are [lock.InvalidRequest] and name the field.
func (c *Change) apply(s *Subscription, policy *webhook.Policy, who *auth.Principal) (err error) {
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
		if s.Locks, s.Within, err = patternOf(*c.Locks, who); err != nil {
			return err
		}
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
			return nil, lock.Invalid("events",
				"must be types of events, or %q; number %d is none of %s, %s",
				AllEvents, i+1, lock.EventKindNames(), Missed)
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

// may reports whether a client may see and change the subscription: one that is limited to some
// names may not if the subscription selects others.
func may(who *auth.Principal, s *Subscription) bool {
	if who.Locks == nil {
		return true
	}
	p, err := auth.ParsePattern(s.Locks)
	return err == nil && who.MayUseAll(p)
}
