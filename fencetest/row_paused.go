package main

import "time"

// paused stops a holder just after it decided to write, until another client was granted the lock.
func paused(b *bench) result {
	all := b.clients("A", "B", "C")
	a, other, third := all[0], all[1], all[2]
	lock := b.lockName("")
	a.hold(lock)
	a.write()
	if said := a.check(); said != "held" {
		b.giveUp("a holder that just acquired says %q", said)
	}
	a.stop()
	began := time.Now()
	granted := b.granted(other.acquire(lock, b.sys.freesWithin()))
	took := seconds(time.Since(began))
	if !granted {
		a.resume()
		a.write()
		return b.verdict("the lock stays with a stopped holder: not granted to another in " + took)
	}
	other.write()
	pause(time.Second)
	a.resume()
	facts := "another is granted it after " + took + "; the late write reaches the resource, "
	rejected := a.write()
	if rejected {
		facts += "unless that checks the fence"
	} else {
		facts += "and no fence can reject it"
	}
	believes := a.believes(ttl)
	facts += "; the holder " + learns(believes, ttl)
	a.release()
	stolen := third.acquire(lock, 2*time.Second).Event == "held"
	if stolen {
		facts += ", and its release freed the lock of the other"
	}
	return b.verdict(facts, shown{"fence", rejected}, shown{"tells_loss", believes < ttl},
		shown{"exclusion", !stolen})
}

// lateRelease delays a release in the network until another client was granted the lock.
func lateRelease(b *bench) result {
	all := b.clients("A", "B", "C")
	a, next, third := all[0], all[1], all[2]
	lock := b.lockName("")
	a.hold(lock)
	b.fault("what A sends is delayed")
	a.proxy.hold(up)
	released := make(chan struct{})
	go func() {
		defer close(released)
		a.release()
	}()
	got := next.acquire(lock, b.sys.freesWithin())
	a.proxy.hold(nothing)
	b.fault("the release of A arrives")
	defer func() { <-released }()
	if !b.granted(got) {
		return b.verdict("the lock stays taken until the release arrives: not granted in " +
			seconds(b.sys.freesWithin()))
	}
	facts := "the release changes nothing for the next holder"
	stolen := third.acquire(lock, 2*time.Second).Event == "held"
	if stolen {
		facts = "the release freed the lock of the next holder"
	}
	return b.verdict(facts, shown{"exclusion", !stolen})
}
