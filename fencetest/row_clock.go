package main

import (
	_ "embed" // the library that moves the clock
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
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
		_, err = output(b.folder, nil, "cc", "-shared", "-fPIC", "-o", library, source)
	}
	if err != nil {
		b.giveUp("a C compiler is needed to set the worker's clock: %v", err)
	}
	cases := []jump{
		{what: "holder +1 h", offset: "3600"},
		{what: "holder -1 h", offset: "-3600"},
		{what: "waiter +1 h", offset: "3600", waiter: true},
	}
	facts, exclusive := make([]string, len(cases)), true
	for i := range cases { // one after the other: giveUp is of this goroutine
		cases[i].prepare(b, library, i)
	}
	var all sync.WaitGroup
	for i := range cases {
		all.Go(cases[i].play)
	}
	all.Wait()
	for i, c := range cases {
		facts[i], exclusive = c.what+": "+c.facts, exclusive && !c.twice
	}
	return b.verdict(strings.Join(facts, "; "), shown{"clock", exclusive})
}

// jump is one clock that jumps while a holds the lock, before next asks for it.
type jump struct {
	what    string
	offset  string
	waiter  bool // it is the clock of next
	a, next *client
	set     func(string)
	lock    string
	facts   string
	twice   bool
}

func (j *jump) prepare(b *bench, library string, i int) {
	n := string(rune('1' + i))
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
	wait := 2*ttl + 2*time.Second
	if j.next.acquire(j.lock, wait).Event != "held" {
		j.facts = "it keeps its lock"
		if said := j.a.check(); said != "held" {
			j.facts = "it hears " + said + ", and no other is granted the lock in " + seconds(wait)
		}
		return
	}
	believes := j.a.believes(ttl)
	j.twice = j.waiter || believes >= time.Second // a waiter's clock is no reason to lose a lock
	j.facts = "another is granted the lock, and the first knows"
	if j.twice {
		j.facts = "two hold the lock until the first asks, here for " + seconds(believes)
	}
}
