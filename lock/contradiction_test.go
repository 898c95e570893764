package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// TestLongRing: what is too long for a notice is cut, and what is left can be told.
func TestLongRing(t *testing.T) {
	for _, name := range []int{1, 40, 200} {
		for _, sides := range []int{2, 3, 30} {
			r := lock.OrderContradiction{Found: time.Now(), Length: sides}
			for i := range sides {
				long := strings.Repeat(string(rune('a'+i%26)), name)
				r.Sides = append(r.Sides, lock.OrderSide{
					From: long, To: long, Holder: strings.Repeat("\U0001F600", name), Held: "h" + long[1:], Taken: "t" + long[1:], At: time.Now(),
				})
			}
			n := lock.NoticeOfContradiction("acme", "ring", r)
			if err := n.Check(); err != nil {
				t.Errorf("%d sides with names of %d: %v", sides, name, err)
			}
			if e, ok := lock.EventOfNotice(n); !ok || e.Contradiction.Length != sides || len(e.Contradiction.Sides) == 0 {
				t.Errorf("%d sides with names of %d are told as %+v", sides, name, e.Contradiction)
			} else if name == 1 && len(e.Contradiction.Sides) != min(sides, 4) {
				t.Errorf("%d sides with short names are cut to %d", sides, len(e.Contradiction.Sides))
			}
		}
	}
}
