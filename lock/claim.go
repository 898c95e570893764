package lock

import "fmt"

// CheckClaims returns what is wrong with the claims of a request or of a stored entry: an
// [Invalid] error, or nil. It names the fields of requests, which differ between a lock and a
// set.
func CheckClaims(claims []Claim, set bool) error {
	switch {
	case set && len(claims) == 0:
		return Invalid("locks", "must name at least one lock")
	case len(claims) > MaxSetSize:
		return Invalid("locks", "must not be more than %d", MaxSetSize)
	}
	seen := make(map[string]struct{}, len(claims))
	for i, c := range claims {
		field := func(name string) string { return name }
		if set {
			field = func(name string) string { return fmt.Sprintf("locks[%d].%s", i, name) }
		}
		if _, again := seen[c.Name]; again {
			return Invalid(field("name"), "repeats %s; name each lock once", c.Name)
		}
		seen[c.Name] = struct{}{}
		if err := c.check(field); err != nil {
			return err
		}
	}
	return nil
}

const onlySemaphores = "is for the mode semaphore only; set that mode, or leave it out"

func (c Claim) check(field func(string) string) error {
	switch {
	case !ValidName(c.Name):
		return Invalid(field("name"), "must be a lock name: 1 to 200 of the characters A-Z a-z 0-9 . "+
			"_ : @ = + -")
	case c.Mode != Exclusive && c.Mode != Shared && c.Mode != Semaphore:
		return Invalid(field("mode"), "must be exclusive, shared or semaphore")
	case c.Mode == Semaphore && (c.Limit < 1 || c.Limit > MaxLimit):
		return Invalid(field("limit"), "must be a whole number from 1 to %d for a semaphore", MaxLimit)
	case c.Mode == Semaphore && (c.Permits < 1 || c.Permits > c.Limit):
		return Invalid(field("permits"), "must be a whole number from 1 to limit, which is %d", c.Limit)
	case c.Mode != Semaphore && c.Limit != 0:
		return Invalid(field("limit"), onlySemaphores)
	case c.Mode != Semaphore && c.Permits != 0:
		return Invalid(field("permits"), onlySemaphores)
	}
	return nil
}
