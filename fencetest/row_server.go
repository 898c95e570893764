package main

import (
	"path/filepath"
	"strings"
	"time"
)

// serverKilled kills the server under a holder that lives, and starts it again.
func serverKilled(b *bench) result {
	b.ttl = 8 * time.Second // a server may take seconds to start
	a := b.clients("A")[0]
	lock := b.lockName("")
	a.hold(lock)
	a.write()
	b.fault("kill -9 of the server")
	began := time.Now()
	b.server.kill()
	if err := b.server.start("start"); err != nil {
		b.giveUp("%v", err)
	}
	b.fault("the server is ready again")
	return b.afterLoss(a, lock, "restarted in "+seconds(time.Since(began))+"; ", "survives_restart")
}

// afterLoss shows what became of the lock of a.
func (b *bench) afterLoss(a *client, lock, facts, claim string) result {
	next := b.clients("B")[0]
	began := time.Now()
	got := next.insist(lock, b.ttl+2*time.Second)
	took := seconds(time.Since(began))
	if got.Event == "held" {
		facts += "another is granted the lock after " + took
		if got.Fence != "" && got.Fence == a.fence {
			facts += " with the same fence"
		}
		next.write()
		limit := 2 * b.ttl // some libraries hear of it when they renew, late in the TTL
		believes := a.believes(limit)
		facts += ", and the first " + learns(believes, limit)
		return b.verdict(facts, shown{claim, false}, shown{"tells_loss", believes < limit})
	}
	if said := a.check(); said != "held" {
		facts += "the holder gets " + said + ", and no other is granted the lock in " + took
		return b.verdict(facts, shown{claim, false})
	}
	return b.verdict(facts+"the holder keeps its lock", shown{claim, true})
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
	replica := &server{
		folder: b.server.folder, data: filepath.Join(b.folder, "replica"), procs: b.procs,
	}
	_, port, _ := strings.Cut(link.address(), ":")
	if err := replica.start("replica", port); err != nil {
		b.giveUp("the replica: %v", err)
	}
	defer replica.kill()
	a := b.clients("A")[0]
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
	if err := replica.script(serverStarts, "promote", replica.port); err != nil {
		b.giveUp("promote: %v", err)
	}
	b.address = replica.address()
	a.proxy.lead(b.address)
	return b.afterLoss(a, lock, "", "survives_failover")
}
