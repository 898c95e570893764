package main

import (
	"strings"
	"time"
)

// deadWaiter has one waiter killed and one give up, and looks whether the next one is granted.
func deadWaiter(b *bench) result {
	all := b.clients("A", "B", "C", "D")
	lock := b.lockName("")
	all[0].hold(lock)
	all[1].queue(lock, time.Minute)
	all[2].acquire(lock, 2*time.Second)
	all[1].die()
	return b.nextGranted(all[3], lock, all[0].release, "after the release, behind a dead waiter")
}

// deadHolder kills the holder.
func deadHolder(b *bench) result {
	both := b.clients("A", "B")
	lock := b.lockName("")
	both[0].hold(lock)
	return b.nextGranted(both[1], lock, both[0].die, "after the holder died")
}

// nextGranted lets a client queue, does what must free the lock, and measures when it is free.
func (b *bench) nextGranted(next *client, lock string, frees func(), after string) result {
	got := next.queue(lock, b.sys.freesWithin()+10*time.Second)
	began := time.Now()
	frees()
	a := <-got
	took := time.Since(began)
	facts := "the next one is granted "
	if a.Event != "held" {
		facts = "the next one gets " + strings.TrimSpace(a.Event+" "+short(a.Text)) +
			", and is not granted within "
	}
	inTime := a.Event == "held" && took < b.sys.freesWithin()+time.Second
	return b.verdict(facts+seconds(took)+" "+after, shown{"frees", inTime})
}
