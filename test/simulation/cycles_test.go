package simulation

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestBarredTryIsInNobodysWay: a try whose replica crashed is kept from holding by a closure, and
// behind it waits another entry of its holder. That is a deadlock as soon as the closure ends.
func TestBarredTryIsInNobodysWay(t *testing.T) {
	for name, opens := range map[string]bool{"Closed": false, "Open": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				broken := brokenBy(t, func(d *doctored) {
					c := d.closed()
					d.named("a", "x", 0)
					d.named("a", "x", time.Hour)
					if opens {
						d.truth.leave(c.ID, lock.Expired, d.now())
					}
					d.watch()
				})
				if found := len(broken) > 0; found != opens {
					t.Errorf("a deadlock is found: %t, want %t", found, opens)
				}
			})
		})
	}
}

// cycle has two holders wait for each other's locks, and their clients for answers. between is
// done when they hold.
func (d *doctored) cycle(between func()) {
	d.named("a", "x", time.Hour)
	d.named("b", "y", time.Hour)
	between()
	d.named("a", "y", time.Hour)
	d.named("b", "x", time.Hour)
	d.watch()
}

// watch gives the check for deadlocks the time that it needs.
func (d *doctored) watch() {
	d.watchDeadlocks()
	d.pass(deadlockGoes + time.Second)
	d.open = nil
}

// named has an entry of a named holder be written. If it waits, its client does for the answer.
func (d *doctored) named(holder, name string, wait time.Duration) {
	d.number++
	e := d.entry(lock.ID(rune('a' + d.number%26)))
	e.Claims[0].Name, e.Holder, e.Named, e.Number = name, holder, true, d.number
	if wait > 0 {
		e.WaitUntil = time.Now().Add(wait)
		c := d.call(acquire, e)
		c.cancel = func() {}
		d.open = append(d.open, c)
	}
	d.truth.join(e, d.now())
}

// closed has all locks be closed.
func (d *doctored) closed() *lock.Entry {
	d.number++
	e := locktest.Closing("closure", d.number, "acme", "*")
	d.truth.join(e, d.now())
	return e
}
