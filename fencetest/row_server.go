package main

import (
	"path/filepath"
	"strconv"
	"time"
)

// serverKilled kills the server under a holder that lives, and starts it again.
func serverKilled(b *bench) result {
	b.ttl = 8 * time.Second // a server may take seconds to start
	a := b.fresh("A")[0]
	lock := b.lockName("")
	a.hold(lock)
	a.write()
	b.fault("kill -9 of the server")
	began := time.Now()
	if err := b.server.restart(); err != nil {
		b.giveUp("%v", err)
	}
	b.fault("the server is ready again")
	facts := "restarted in " + seconds(time.Since(began)) + "; "
	return b.afterLoss(a, lock, facts, "survives_restart")
}

// afterLoss shows what became of the lock of a, by which a can still believe.
func (b *bench) afterLoss(a *client, lock, facts, claim string) result {
	began := time.Now()
	next := b.fresh("B")[0]
	got := next.insist(lock, b.ttl+2*time.Second)
	if got.Event != "held" {
		if said := a.check(); said != "held" {
			return b.verdict(facts+"the holder hears "+said+", and no other is granted the lock in "+
				seconds(time.Since(began)), shown{claim, false})
		}
		return b.verdict(facts+"the holder keeps its lock", shown{claim, true})
	}
	facts += "another was granted the lock after " + seconds(time.Since(began))
	next.write()
	believes := a.believes(b.ttl)
	switch {
	case believes >= b.ttl:
		facts += ", and the first never learns of it"
	case believes >= time.Second:
		facts += ", and the first learns of it " + seconds(believes) + " later"
	default:
		facts += ", and the first knows"
	}
	return b.verdict(facts, shown{claim, false}, shown{"tells_loss", believes < b.ttl})
}

// failover kills a primary after a grant that its asynchronous replica has not heard of.
func failover(b *bench) result {
	b.ttl = 8 * time.Second
	if !b.server.has("replica") {
		b.giveUp("there is no replica to fail over to in this setting")
	}
	link, err := newProxy(b.server.address())
	if err != nil {
		b.giveUp("%v", err)
	}
	defer link.close()
	replica, err := b.replica(link)
	if err != nil {
		b.giveUp("the replica: %v", err)
	}
	defer replica.kill()
	a := b.fresh("A")[0]
	a.hold(b.lockName("-before"))
	a.release()
	pause(2 * time.Second) // for the replica to have what was before
	b.fault("replication is delayed")
	link.hold(up | down)
	lock := b.lockName("")
	a.hold(lock)
	a.write()
	b.fault("kill -9 of the primary, and the replica is promoted")
	b.server.kill()
	if err := replica.script("promote", strconv.Itoa(replica.port)); err != nil {
		b.giveUp("promote: %v", err)
	}
	b.address = replica.address()
	a.proxy.lead(b.address)
	return b.afterLoss(a, lock, "", "survives_failover")
}

// replica starts a replica of the server, connected through link.
func (b *bench) replica(link *proxy) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{
		folder: b.server.folder, port: port, data: filepath.Join(b.folder, "replica"), procs: b.procs,
	}
	return s, s.start("replica", strconv.Itoa(link.port()))
}
