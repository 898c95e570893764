package lock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
)

func TestChoiceKeepsTheFirstOfTheRequest(t *testing.T) {
	claim := func(name string) lock.Claim { return lock.Claim{Name: name, Mode: lock.Exclusive} }
	e := &lock.Entry{
		Claims: []lock.Claim{claim("a"), claim("b"), claim("c"), claim("d")}, Set: true, Any: 2,
		Order: []int{3, 1, 0, 2},
	}
	but := func(names ...string) func(lock.Claim) bool {
		return func(c lock.Claim) bool {
			for _, name := range names {
				if c.Name == name {
					return false
				}
			}
			return true
		}
	}
	if kept, ok := e.Choice(but("b", "c", "d")); ok || kept != nil {
		t.Errorf("one lock suffices where two were asked for: %v", kept)
	}
	kept, ok := e.Choice(but("b"))
	if diff := cmp.Diff([]lock.Claim{claim("a"), claim("d")}, kept); !ok || diff != "" {
		t.Errorf("the choice is other than the first two in the order of the request:\n%s", diff)
	}
	if after := e.Narrowed(kept); after.Choosing() || !e.Choosing() || after.Home() != e.Home() {
		t.Errorf("after the choice: choosing %v, at %s", after.Choosing(), after.Home())
	}
}
