package simulation

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/memory"
)

// fault begins something that goes wrong.
func (w *world) fault() {
	if w.healed {
		return
	}
	r := w.replicas[w.pick(len(w.replicas))]
	kind := w.pick(9)
	w.note("fault", kind, r.n)
	switch kind {
	case 0:
		r.stillUntil = w.now() + w.between(100*time.Millisecond, 8*time.Second)
		r.stoodUntil = r.stillUntil
		if w.Webhooks {
			w.stopShards(r)
		}
	case 1:
		w.lag(r)
	case 2:
		r.wire.cutFeed(w.between(time.Millisecond, 6*time.Second))
	case 3:
		w.server.Compact()
		r.wire.cutFeed(w.between(time.Millisecond, 200*time.Millisecond))
	case 4, 5:
		w.jump(r)
	case 6:
		w.crash(r)
	case 7:
		w.restart(r)
	case 8:
		w.server.Compact()
		w.lag(r)
	}
}

// stopShards has the replica's shards be another's: its messages are late, or its renewals of their
// locks are, which it does not hear of. Others do not see it on the list meanwhile.
func (w *world) stopShards(r *replica) {
	until := r.stillUntil
	if w.percent(50) {
		until = w.now() + w.between(6*time.Second, 15*time.Second)
		r.muteUntil, r.lagUntil, r.stillUntil = until, until, 0
	}
	name, after := r.name(), w.between(store.RecordLife, store.RecordLife+store.RecordLifeLate)
	if w.now()+after < until {
		w.schedule(after, func() { w.list.away(name, true) })
		w.schedule(until-w.now()+w.latency(), func() { w.list.away(name, false) })
	}
}

// lag has the replica's feed tell everything late for a while.
func (w *world) lag(r *replica) {
	r.lagUntil = w.now() + w.between(300*time.Millisecond, 10*time.Second)
}

// jump changes the replica's wall clock: by an hour at most, one time in four.
func (w *world) jump(r *replica) {
	most := time.Minute
	if w.pick(4) == 0 {
		most = time.Hour
	}
	by := w.between(-most, most)
	r.offset.Add(int64(by))
	w.turned += max(0, by.Abs()-time.Minute)
	for _, k := range w.open {
		if k.replica == r {
			k.jumped = true
		}
	}
}

// crash ends a replica, with all that it does, and starts it again later.
func (w *world) crash(r *replica) {
	if r.down {
		return
	}
	r.crash()
	w.hangUp(r)
	w.schedule(w.between(10*time.Millisecond, 10*time.Second), r.start)
}

// restart shuts a replica down in good order.
func (w *world) restart(r *replica) {
	if r.down {
		return
	}
	r.down = true
	r.svc.Drain()
	w.schedule(8*time.Second, func() {
		w.hangUp(r)
		r.end()
		r.start()
	})
}

// hangUp breaks the connections of all clients of a replica.
func (w *world) hangUp(r *replica) {
	for _, k := range w.open {
		if k.replica == r {
			k.disconnect()
		}
	}
}

// heal ends all that goes wrong. What got stuck arrives.
func (w *world) heal() {
	w.note("heal")
	w.healed, w.since = true, w.now()
	w.schedule(0, w.operate)
	for _, r := range w.replicas {
		r.stillUntil, r.lagUntil, r.muteUntil = 0, 0, 0
		r.wire.cutFeed(0)
	}
	for _, m := range w.stuck {
		if !m.arrived {
			w.schedule(w.between(0, 5*time.Second), func() { w.carryOut(m, false) })
		}
	}
	w.stuck = nil
}

// hangUpOn has the client of a stuck request hang up now and then before the store has to answer.
func (w *world) hangUpOn(m *message) {
	if c := w.truth.calls[m.caller]; c != nil && w.percent(30) {
		w.schedule(w.between(0, 1500*time.Millisecond), c.disconnect)
	}
}

// unstick has the attempts to write an entry that got stuck arrive at the worst moment: just before
// they are shut out, or just after someone has looked for what they write.
func (w *world) unstick(id lock.ID) {
	for _, m := range w.stuck {
		if m.op == memory.Put && m.id == id && !m.arrived && w.percent(50) {
			w.carryOut(m, false)
		}
	}
}

// fill has the store answer a write, which it may make or not, that it is full.
func (w *world) fill(m *message) {
	write := m.op == memory.Put || m.op == memory.Commit
	if m.full = write && w.Full > 0 && w.chance(w.Full); m.full && w.percent(50) {
		m.do = func() error { return errFull() }
	}
}

func errFull() error {
	return &engine.Full{Cause: store.Unavailable(errors.New("full"), "write", false)}
}
