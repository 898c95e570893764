// Package bubble runs tests in bubbles of testing/synctest, with the race detector too.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test runs f as [synctest.Test] does.
//
// Under the race detector it lets one thread at a time run Go code. All timers of a bubble
// share one context of the detector, which two threads must not use at once. They do when
// goroutines of a bubble look at channels of timers that are due, and the detector then
// ends the process, with SIGSEGV or a failed CHECK of its own (https://go.dev/issue/78156,
// Go 1.26.8 has it still). It finds races by what is ordered, and needs no second thread
// for that.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if raced {
		alone.enter()
		defer alone.leave()
	}
	synctest.Test(t, f)
}

var alone processors

// processors counts the bubbles, which can be in tests that run in parallel.
type processors struct {
	mu      sync.Mutex
	bubbles int
	before  int // of GOMAXPROCS, while there are bubbles
}

func (p *processors) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bubbles == 0 {
		p.before = runtime.GOMAXPROCS(1)
	}
	p.bubbles++
}

func (p *processors) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bubbles--
	if p.bubbles == 0 {
		runtime.GOMAXPROCS(p.before)
	}
}
