package simulation

import (
	"time"

	"github.com/fencepost/fencepost/store/memory"
)

// backup copies the store, which goes back to that a while later.
func (w *world) backup() {
	copied, at := w.server.Checkpoint(), w.now()
	w.note("backup", copied.Number)
	w.schedule(w.between(100*time.Millisecond, 10*time.Second), func() { w.restore(copied, at) })
}

// restore has the store go back under the replicas, in the same cluster or another.
// What is under way to it is lost.
func (w *world) restore(to memory.Checkpoint, copied time.Duration) {
	if w.healed {
		return
	}
	w.truth.catchUp()
	w.told.numbersChange()
	elsewhere := w.percent(30)
	w.note("restore", to.Number, w.server.Number(), elsewhere)
	if elsewhere {
		w.server.RestoreElsewhere(to)
	} else {
		w.server.Restore(to)
	}
	w.numbered++
	w.restored = w.numbered
	w.missing = true
	for _, r := range w.replicas {
		r.wire.shown, r.wire.spoke = 0, false
	}
	w.truth.wentBack(copied, w.server.Entries())
	w.operator.wentBack()
	w.schedule(w.between(2*time.Second, 15*time.Second), w.operate)
}

// operate does what an operator does about a restore: it restarts one replica with a floor above
// every fence that was ever issued.
func (w *world) operate() {
	if !w.missing {
		return
	}
	w.truth.catchUp()
	w.checkNoticed()
	floor := w.truth.greatest + 1 + uint64(w.pick(1000))
	w.note("floor", floor)
	r := w.replicas[w.pick(len(w.replicas))]
	running := !r.down
	if running {
		r.crash()
		w.hangUp(r)
	}
	if err := w.server.Raise(floor); err != nil {
		w.problem("a floor of %d: %v", floor, err)
	}
	w.missing = false
	w.judge.trusts(floor)
	w.numbered++
	w.truth.renumbered(w.server.Entries(), w.server.Number())
	if running {
		r.start()
	}
}

// checkNoticed: a replica that was shown a number below one that it had heard before it
// asked has told the store at once.
func (w *world) checkNoticed() {
	for _, r := range w.replicas {
		if l := r.wire; !r.down && l.shown != 0 && l.shown < w.now()-100*time.Millisecond && !l.spoke {
			w.problem(
				"replica %d did not notice that the store went back, which it was shown at %v", r.n, l.shown,
			)
		}
	}
}
