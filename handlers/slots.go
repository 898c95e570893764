package handlers

import (
	"context"
	"runtime"
	"time"
)

const (
	// slotsOfProcessor is how many requests that change entries run at once for each processor.
	slotsOfProcessor = 128

	// slotTime is for how long a request keeps its slot at most. A write that waits longer, for the
	// store, for its lock or for earlier writes to that, takes no time of a processor meanwhile.
	slotTime = 25 * time.Millisecond

	// How many wait for a slot: as many as the store lets wait to be written.
	maxSlotWaiters         = 1 << 16
	maxSlotWaitersOfTenant = 1 << 15
)

// newSlots returns the gate of the requests that change entries. They are cheap. But of thousands
// that one tenant has under way, hundreds are runnable at once, and each step of another
// tenant's request would wait behind all of them.
func newSlots() *gate {
	return &gate{
		slots: slotsOfProcessor * runtime.GOMAXPROCS(0),
		most:  maxSlotWaiters, mostOfTenant: maxSlotWaitersOfTenant, kind: "requests",
	}
}

// inSlot has an operation wait for a slot. Its body is here already: a client may send that slowly.
func inSlot[In any](
	l load, call func(*request, *In) (reply, error),
) func(*request, *In) (reply, error) {
	return func(r *request, in *In) (reply, error) {
		leave, err := slot(r, l)
		if err != nil {
			return reply{}, err
		}
		defer leave()
		return call(r, in)
	}
}

// slot waits for a slot. A release waits for no acquire of its tenant, runs although its client has
// left, and is never rejected: over the bound it runs without a slot.
func slot(r *request, l load) (leave func(), err error) {
	g, ctx, key := r.endpoints.slots, r.context(), r.tenant()
	if l == releasing {
		ctx, key = context.WithoutCancel(ctx), "releases of "+key
	}
	err = g.enter(ctx, key)
	switch {
	case err == nil:
		held := time.AfterFunc(slotTime, g.leave)
		return func() {
			if held.Stop() {
				g.leave()
			}
		}, nil
	case l == releasing:
		return func() {}, nil
	}
	return nil, err
}
