package handlers

import (
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

const (
	// anonymousPerProcessor is how many requests a second run for each processor that are not
	// authenticated, and anonymousAtOnce how many more when there were none for a while.
	anonymousPerProcessor = 2000
	anonymousAtOnce       = 200

	// longestPace is how long such a request waits. The server rejects what would wait longer.
	longestPace = 2 * time.Second

	// maxHeads is how many bytes the heads of those that wait have.
	maxHeads = 16 << 20
)

// newPace returns the rate of the requests that are not authenticated, of all clients together.
func newPace() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(anonymousPerProcessor*runtime.GOMAXPROCS(0)), anonymousAtOnce)
}

// pace has a request that is not authenticated wait until the rate of all of them allows it. A
// goroutine whose connection always has the next request does not yield. Without the wait a few
// dozen connections take a time slice of the scheduler each, at each step of an acquire.
//
// Over HTTP/2 the wait goes on after the client has reset the request: otherwise a reset one would
// take nothing of the rate, while net/http bounds how many of a connection have not ended.
func (r *request) pace() error {
	if r.paced {
		return nil
	}
	r.paced = true
	turn := r.endpoints.anonymous.Reserve()
	wait := turn.Delay()
	if wait == 0 {
		return nil
	}
	size := headSize(r)
	if wait > longestPace || !r.endpoints.heads.take("", size) {
		turn.Cancel()
		r.Header("Connection", "close")
		return errOverloaded("requests without authentication")
	}
	defer r.endpoints.heads.give("", size)
	gone := r.context().Done()
	if r.Request.ProtoMajor > 1 {
		gone = nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-gone:
		turn.Cancel()
		return r.context().Err()
	}
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
