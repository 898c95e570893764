package handlers

import (
	"context"
	"net/netip"
	"runtime"
	"time"
)

const (
	// Of the requests that are paced, pacedAtOnce begin for each processor within
	// pacePause. These are 2000 a second, for which a processor works for a tenth of that.
	pacedAtOnce = 4
	pacePause   = 2 * time.Millisecond

	// How many of them wait, in all and of one address or tenant.
	maxPaced          = 16_000
	maxPacedOfAddress = 8_000

	// How many bytes their heads have. Small heads, as those of probes, are bounded by their number.
	maxHeads          = 16 << 20
	maxHeadsOfAddress = 4 << 20
	uncountedHead     = 1 << 10
)

// newPace returns the gate of the requests that are not authenticated, or exceed the rate of their
// tenant. Addresses and such tenants alternate there.
func newPace() *gate {
	return &gate{
		slots: pacedAtOnce * runtime.GOMAXPROCS(0), most: maxPaced, mostOfTenant: maxPacedOfAddress,
		kind: "requests without authentication, or over a rate,",
	}
}

// pace has a request of the kinds that [newPace] names wait until few of them have just begun. A
// goroutine whose connection always has the next request does not yield. Without the wait a few
// dozen connections take a time slice of the scheduler each, at each step of an acquire.
func (r *request) pace() error {
	if r.paced {
		return nil
	}
	r.paced = true
	a, key, size := r.endpoints, r.paceKey(), headSize(r)
	if size <= uncountedHead {
		size = 0
	}
	err := errOverloaded(a.anonymous.kind)
	if a.heads.take(key, size) {
		defer a.heads.give(key, size)
		err = a.anonymous.enter(r.present(), key)
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
	if r.conn.over != nil {
		return r.conn.over.open
	}
	return context.WithoutCancel(r.context())
}

// paceKey is whose turn the request takes: that of its tenant, or of its client's address.
func (r *request) paceKey() string {
	if r.principal != nil {
		return "tenant " + r.tenant()
	}
	return textOfAddress(network(r.address()))
}

// network is the part of an address that tells clients apart: of IPv6 a client has 2^64.
func network(addr netip.Addr) netip.Addr {
	const bits = 64
	if addr.Is6() {
		if prefix, err := addr.Prefix(bits); err == nil {
			return prefix.Addr()
		}
	}
	return addr
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
