package main

import (
	_ "embed" // the library that moves the clock
	"os"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed shim/clock.c
var clockSource string

// clock lets the clock of a holder's machine jump forward and back, and that of a waiter's forward.
func clock(b *bench) result {
	if !b.sys.FakeTime {
		b.giveUp("the worker does not read the clock through the C library, where the test can set it")
	}
	source, library := filepath.Join(b.folder, "clock.c"), filepath.Join(b.folder, "clock.so")
	err := os.WriteFile(source, []byte(clockSource), 0o600)
	if err == nil {
		_, err = output(installs, b.folder, "cc", "-shared", "-fPIC", "-o", library, source)
	}
	if err != nil {
		b.giveUp("a C compiler is needed to set the worker's clock: %v", err)
	}
	jumps := []jump{
		{what: "holder +1 h", offset: "3600"},
		{what: "holder -1 h", offset: "-3600"},
		{what: "waiter +1 h", offset: "3600", waiter: true},
	}
	for i := range jumps {
		jumps[i].prepare(b, library, string(rune('1'+i)))
	}
	var all sync.WaitGroup
	for i := range jumps {
		all.Go(jumps[i].play)
	}
	all.Wait()
	var facts []string
	safe := true
	for _, j := range jumps {
		b.granted(j.got)
		facts, safe = append(facts, j.what+": "+j.facts), safe && !j.bad
	}
	return b.verdict(strings.Join(facts, "; "), shown{"clock", safe})
}

// jump is one clock that jumps while a holds the lock, before next asks for it.
type jump struct {
	what, offset string
	waiter       bool // it is the clock of next
	a, next      *client
	set          func(string)
	lock, facts  string
	got          answer // to next
	bad          bool
}

func (j *jump) prepare(b *bench, library, n string) {
	j.lock = b.lockName("-" + n)
	if j.waiter {
		j.a = b.clients("A" + n)[0]
		j.next, j.set = b.faked(library, "B"+n)
	} else {
		j.a, j.set = b.faked(library, "A"+n)
		j.next = b.clients("B" + n)[0]
	}
	j.a.hold(j.lock)
}

func (j *jump) play() {
	j.a.b.fault("clock of the %s", j.what)
	j.set(j.offset)
	wait := 3 * ttl
	j.got = j.next.acquire(j.lock, wait)
	believes := j.a.believes(ttl)
	switch {
	case j.got.Event == "held":
		// A waiter's clock is no reason to lose a lock. A holder's is, if the holder knows.
		j.bad = j.waiter || believes >= ttl/2
		j.facts = "another is granted the lock, and the first " + learns(believes, ttl)
	case believes >= ttl:
		j.facts = "the holder keeps its lock"
	default:
		j.facts = "the holder loses its lock, and no other is granted it in " + seconds(wait)
	}
}
