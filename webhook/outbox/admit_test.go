package outbox

import (
	"fmt"
	"testing"
)

// TestRoomForAnother: however many tenants have receivers that are gone, there is room for
// what one more is told, in number and in bytes.
func TestRoomForAnother(t *testing.T) {
	for name, size := range map[string]int{"number": 100, "bytes": 4000} {
		t.Run(name, func(t *testing.T) {
			w := newOwner(&shard{Outbox: &Outbox{}, name: shardName(0)}, 1)
			for tenant := range 40 {
				for hook := range 6 {
					w.fill(w.target(fmt.Sprint("tenant-", tenant), fmt.Sprint(hook)), size)
				}
			}
			if n := w.fill(w.target("another", "hook"), size); n == 0 {
				t.Errorf("there is no room for another one: %+v", w.targets.load[""])
			}
			if in := w.targets.load[""]; in.count > maxInAll || in.bytes > bytesInAll {
				t.Errorf("there is too much: %+v", in)
			}
		})
	}
}

// fill takes up as many deliveries of a target as there is room for.
func (w *owner) fill(t *target, size int) (n int) {
	for w.admit(&delivery{target: t, record: fmt.Sprint(n), size: size}) {
		n++
	}
	return n
}
