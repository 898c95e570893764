package handlers

import (
	"context"
	"net/netip"
	"runtime"
	"time"
)

const (
	// Of the requests that are not authenticated, pacedAtOnce begin for each processor within
	// pacePause. These are 2000 a second, for which a processor works for a tenth of that.
	pacedAtOnce = 4
	pacePause   = 2 * time.Millisecond

	// How many of them wait, in all and of one address. maxHeads is how many bytes their heads have.
	maxPaced          = 16_000
	maxPacedOfAddress = 8_000
	maxHeads          = 16 << 20
)

// newPace returns the gate of the requests that are not authenticated. Addresses alternate there.
func newPace() *gate {
	return &gate{
		slots: pacedAtOnce * runtime.GOMAXPROCS(0), most: maxPaced, mostOfTenant: maxPacedOfAddress,
		kind: "requests without authentication",
	}
}

// pace has a request that is not authenticated wait until few of them have just begun. A goroutine
// whose connection always has the next request does not yield. Without the wait a few dozen
// connections take a time slice of the scheduler each, at each step of an acquire.
func (r *request) pace() error {
	if r.paced {
		return nil
	}
	r.paced = true
	a, size := r.endpoints, headSize(r)
	err := errOverloaded(a.anonymous.kind)
	if a.heads.take("", size) {
		defer a.heads.give("", size)
		err = a.anonymous.enter(r.present(), paceKey(r.address()))
	}
	if err != nil {
		r.Header("Connection", "close")
		return err
	}
	// Not when it ends: a client may take its answer slowly.
	time.AfterFunc(pacePause, a.anonymous.leave)
	return r.context().Err()
}

// present ends when the client has closed its connection. Over HTTP/2 a reset does not end it: a
// reset would else cost the client nothing, and net/http closes a connection with too many such
// requests.
func (r *request) present() context.Context {
	if r.Request.ProtoMajor < 2 {
		return r.context()
	}
	if r.over != nil {
		return r.over.open
	}
	return context.WithoutCancel(r.context())
}

// paceKey is whose turn it is among the addresses: of IPv6 a client has 2^64.
func paceKey(addr netip.Addr) string {
	const bits = 64
	if addr.Is6() {
		prefix, err := addr.Prefix(bits)
		if err == nil {
			addr = prefix.Addr()
		}
	}
	return textOfAddress(addr)
}

// headSize is how many bytes of a request's head are in memory.
func headSize(r *request) int {
	size := len(r.Request.RequestURI)
	for name, values := range r.Request.Header {
		size += len(name)
		for _, value := range values {
			size += len(value)
		}
	}
	return size
}
