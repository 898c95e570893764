package outbox

import (
	"context"
	"sync"
)

// writes are an owner's calls of the store: a few at once, the others wait. The owner's
// goroutine has all but the waiting for the end.
type writes struct {
	owner   *owner
	queue   []call
	running int
	all     sync.WaitGroup
}

// call asks the store, and returns what the owner is to do then.
type call func(context.Context) (then func())

// do has a call made as soon as there is room.
func (w *writes) do(c call) {
	w.queue = append(w.queue, c)
	w.start()
}

func (w *writes) start() {
	for w.running < writesAtOnce && len(w.queue) > 0 {
		c := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.running++
		w.all.Go(func() { w.run(c) })
	}
}

// run makes a call. It is not interrupted when the shard is given up: what comes of it
// should be known.
func (w *writes) run(c call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.owner.ctx), callTimeout)
	defer cancel()
	then := c(ctx)
	w.owner.bring(func() {
		w.running--
		then()
		w.start()
	})
}
