package simulation

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// cycle has two holders wait for each other's locks, and their clients for answers.
func (d *doctored) cycle() {
	d.named("a", "x", time.Hour)
	d.named("b", "y", time.Hour)
	d.named("a", "y", time.Hour)
	d.named("b", "x", time.Hour)
	d.watch()
}

// watch gives the check for waits that stand the time that it needs.
func (d *doctored) watch() {
	d.watchWaits()
	d.pass(waitsGo + time.Second)
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
