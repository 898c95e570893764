package outbox

import (
	"strconv"
	"time"
)

// ShardOf is for tests.
func ShardOf(name string) string { return shardOf(name) }

// MaxOfTarget bounds the pending deliveries of a target.
const MaxOfTarget = maxOfTarget

// Quiet returns of how many receivers of callbacks it is kept that they want no attempts, after so
// many have said so.
func Quiet(asked int) int {
	all := newTargets()
	t := all.of("acme", Callbacks)
	for i := range asked {
		d := &delivery{target: t}
		d.Call = &callbackCall{URL: strconv.Itoa(i)}
		all.add(d)
		d.lane.quiet = time.Now().Add(time.Hour)
		all.drop(d)
	}
	return len(t.lanes)
}
