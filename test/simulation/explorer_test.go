package simulation

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// explorer decides what happens in a history of a scenario, instead of a random source. In the
// ordinary order each request is served as it comes, and answered at once. It makes the given
// deviations, and notes where others were possible.
//
// A nil explorer is that of a history which a seed draws.
type explorer struct {
	w        *world
	scenario *scenario
	todo     []choice // deviations to make, in the order of their points
	points   []point
	made     []string // the deviations, with their labels
	held     []*held
	renewals map[lock.ID]int

	// vain: a deviation waited for something that did not come, so it has swapped nothing.
	vain    bool
	skipped int // points that were left out

	copy   memory.Checkpoint // of the store, to restore
	copied time.Duration     // when it was made, 0 if it was not

	tells bool     // the story, or no story
	lines []string // of it
}

// point is where a history may deviate from the ordinary order.
type point struct {
	label   string
	options []string
}

// choice is a deviation. To replay, it must find what it found.
type choice struct {
	Point  int
	At     string // the label
	Option string
}

// Deviations.
const (
	behind  = "behind"           // served after the next write to the same locks, of anybody
	passed  = "behind a read"    // a write is served after the next other request about the locks
	noReply = "no answer"        // its answer is lost
	slow    = "slow answer"      // its answer comes after the next news at the replica
	joins   = "joins"            // it shares the transaction of the next write
	lateNow = "late"             // written as soon as its caller has given up
	late1   = "late 1"           // the same, after one more request about the entry
	late2   = "late 2"           // and after two
	lateEnd = "late end"         // when everything is over
	lateOff = "late, alone"      // its client hangs up, and it arrives after one more request
	lostOff = "no answer, alone" // its client hangs up, and it is carried out

	newsBehind = "news behind" // the feed tells after the replica's next answer
	newsLate   = "news late"   // and after seconds

	unreached = "unreached" // an attempt does not get to the receiver
	failed    = "failed"    // its answer is an error
	slowly    = "slowly"    // its answer comes too late

	crashBefore = "crash before" // the replica crashes, and its request is lost
	crashAfter  = "crash after"  // it crashes when its request was carried out
	still       = "still"        // the replica stands still, and then its request arrives
	gap         = "gap"          // its feed begins again with a list
	leave       = "leave"        // the client hangs up
	closing     = "close"        // an operator closes the lock
	restoring   = "restore"      // the store goes back to its copy
	draining    = "drain"        // the replica shuts down in good order
	mute        = "mute"         // the renewals of its shard's lock are lost for a while
)

const (
	scriptFrom = 2 * time.Second         // replicas have their first views
	patience   = 1400 * time.Millisecond // less than a caller waits for an answer
	givenUp    = 1501 * time.Millisecond // since a request was sent
	overAfter  = 10 * time.Second
	newsAfter  = 3 * time.Second
	stillFor   = 6 * time.Second
	muteFor    = 16 * time.Second

	maxPoints   = 90 // of a history
	maxRenewals = 2  // of an entry, that are points

	closuresKey = "closures"
)

// choose returns the deviation at a point, "" for none.
func (x *explorer) choose(label string, options []string) string {
	switch {
	case x.w.healed || x.w.now() < scriptFrom+x.scenario.from || len(options) == 0:
		return ""
	case len(x.points) == maxPoints:
		x.skipped++
		return ""
	}
	n := len(x.points)
	x.points = append(x.points, point{label, options})
	if len(x.todo) == 0 || x.todo[0].Point != n || x.todo[0].At != label {
		return ""
	}
	what := x.todo[0].Option
	x.todo = x.todo[1:]
	x.made = append(x.made, what+" to a "+label)
	return what
}

// serve is when a request has arrived at the store.
func (x *explorer) serve(m *message) {
	w, what := x.w, x.choose(string(m.op), x.optionsOf(m))
	x.deviates(what, m)
	switch what {
	case behind:
		x.hold(&held{locks: x.locksOf(m), id: m.id, do: func() { w.carryOut(m, true) }}, m.left())
	case passed:
		x.hold(&held{readOf: x.locksOf(m), do: func() { w.carryOut(m, true) }}, m.left())
	case noReply:
		w.carryOut(m, false)
	case slow:
		m.slow = true
		w.carryOut(m, true)
	case joins:
		x.join(m)
	case lateNow, late1, late2, lateEnd:
		x.late(m, slices.Index([]string{lateNow, late1, late2, lateEnd}, what))
	case lostOff:
		w.truth.calls[m.caller].disconnect()
		w.carryOut(m, false)
	case lateOff:
		w.truth.calls[m.caller].disconnect()
		x.late(m, 1)
	default:
		x.fault(what, m)
	}
}

// left is how long its caller waits for the answer to a request.
func (m *message) left() time.Duration { return max(1, m.sent+patience-m.wire.w.now()) }

// join has a write wait for the next one, to share its transaction.
func (x *explorer) join(m *message) {
	w := x.w
	w.join(m, true)
	w.schedule(m.left(), func() {
		if slices.Contains(w.joining, m) {
			x.vain = true
			w.transact()
		}
	})
}

// late has a write commit after its caller has given up, and after more requests about its entry;
// three stand for the end.
func (x *explorer) late(m *message, after int) {
	w := x.w
	do := func() { w.carryOut(m, false) }
	w.stuck = append(w.stuck, m) // heal has it arrive, at the latest
	if after == 0 {
		w.schedule(m.sent+givenUp-w.now(), do)
		return
	}
	x.hold(&held{late: m, after: after % 3, patient: after == 3, do: do}, overAfter)
}

// fault has something fail, and then serves the request if it still can be.
func (x *explorer) fault(what string, m *message) {
	w, r := x.w, m.wire.r
	switch what {
	case crashBefore:
		w.crash(r)
		return
	case crashAfter:
		w.carryOut(m, false)
		w.crash(r)
		return
	case still:
		r.stillUntil = w.now() + stillFor
		r.stoodUntil = r.stillUntil
		w.schedule(stillFor+w.latency(), func() { w.carryOut(m, true) })
		return
	case gap:
		w.server.Compact()
		r.wire.cutFeed(time.Millisecond)
	case leave:
		w.truth.calls[m.caller].disconnect()
	case closing:
		w.operator.close()
	case restoring:
		w.restore(x.copy, x.copied)
	case draining:
		w.restart(r)
	case mute:
		r.muteUntil = w.now() + muteFor
		r.lagUntil = r.muteUntil
	}
	w.carryOut(m, true)
}

// delays reports whether it keeps news back, to tell it later.
func (x *explorer) delays(l *wire, n *news, tell func()) bool {
	if x == nil || len(n.run.Changes) == 0 {
		return false
	}
	switch what := x.choose("news", []string{newsBehind, newsLate}); what {
	case newsBehind:
		x.deviated("the feed of replica %d lags", l.r.n)
		x.hold(&held{news: l, do: tell}, newsAfter)
	case newsLate:
		x.deviated("the feed of replica %d lags by %v", l.r.n, newsAfter)
		x.w.schedule(newsAfter, tell)
	default:
		return false
	}
	return true
}

// receiver returns what becomes of an attempt to send a webhook, as a number of a hundred.
func (x *explorer) receiver(w *world, a *attempt) int {
	if x == nil {
		return w.pick(100)
	}
	what := x.choose("attempt", []string{unreached, failed, slowly})
	if what == "" {
		return w.Unwell
	}
	x.deviated("the attempt %s of replica %d: %s", a.message.ID, a.wire.r.n, what)
	return slices.Index([]string{unreached, failed, "throttled", slowly}, what)
}

// optionsOf are the deviations that are possible at a request. Requests about different locks
// commute in the store, so none of them is about their order.
func (x *explorer) optionsOf(m *message) []string {
	if len(x.locksOf(m)) == 0 && !(x.w.Webhooks && (m.op == memory.Commit || m.op == memory.Look)) {
		return nil
	}
	var options []string
	switch m.op {
	case memory.Put, memory.Remove, memory.Narrow:
		options = []string{behind, passed, noReply, slow, joins, lateNow, late1, late2, lateEnd}
	case memory.Revoke, memory.Commit:
		options = []string{behind, passed, noReply, slow, lateNow, lateEnd}
	case memory.Renew:
		if x.renewals[m.id]++; x.renewals[m.id] > maxRenewals {
			x.skipped++
			return nil
		}
		options = []string{behind, noReply, slow}
	default:
		options = []string{behind, noReply, slow}
	}
	for _, f := range x.scenario.faults {
		if x.can(f, m) {
			options = append(options, f)
		}
	}
	if m.op == memory.Put && slices.Contains(options, leave) {
		options = append(options, lateOff, lostOff)
	}
	return options
}

// can reports whether a fault makes a difference here. To crash makes one only from write to write.
func (x *explorer) can(fault string, m *message) bool {
	switch fault {
	case crashBefore, crashAfter:
		return writes(m) || m.op == memory.Renew
	case leave:
		c := x.w.truth.calls[m.caller]
		return c != nil && !c.gone
	case restoring:
		return x.copied > 0 && x.w.restored == 0
	}
	return true
}

// locksOf are the locks that a request is about.
func (x *explorer) locksOf(m *message) []string {
	switch l := x.w.truth.last(m.id); {
	case m.part != nil && m.part.entry != nil:
		return names(m.part.entry.Claims)
	case l != nil:
		return names(l.wanted)
	case m.op == memory.Queue:
		return []string{string(m.id[len(tenant)+1:])}
	}
	return nil
}

func names(claims []lock.Claim) (all []string) {
	for _, c := range claims {
		all = append(all, c.Name)
	}
	return all
}
