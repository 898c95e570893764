package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// answerLost loses the first, second or third answer of the server to one acquire: which of them
// says that the lock is granted depends on the lock's protocol.
func answerLost(b *bench) result {
	facts, errs := make([]string, 3), make([]string, 3)
	exclusive, freed := true, true
	var all sync.WaitGroup
	var mu sync.Mutex
	clients := b.clients("A1", "B1", "A2", "B2", "A3", "B3")
	for i := range facts {
		all.Go(func() {
			l := loss{a: clients[2*i], b: clients[2*i+1], lock: b.lockName(fmt.Sprintf("-%d", i+1))}
			l.play(i + 1)
			mu.Lock()
			defer mu.Unlock()
			if l.facts != "" {
				facts[i] = fmt.Sprintf("answer %d lost: %s", i+1, l.facts)
			}
			errs[i], exclusive, freed = l.broken, exclusive && !l.twice, freed && !l.taken
		})
	}
	all.Wait()
	if errs[0] != "" {
		b.giveUp("%s", errs[0])
	}
	facts = slices.DeleteFunc(facts, func(f string) bool { return f == "" })
	return b.verdict(strings.Join(facts, "; "), shown{"exclusion", exclusive}, shown{"frees", freed})
}

// loss is one lost answer to a, and what b finds then.
type loss struct {
	a, b          *client
	lock          string
	facts, broken string
	twice         bool // both held the lock
	taken         bool // the lock stays taken
}

func (l *loss) play(nth int) {
	// What a client does once, such as to connect, must not take the fault.
	if got := l.a.acquire(l.lock+"-warm", ttl).Event; got != "held" {
		l.broken = "the client could not acquire a free lock: " + got
		return
	}
	l.a.release()
	l.a.b.fault("answer %d to %s gets lost", nth, l.a.name)
	l.a.proxy.lose(nth)
	got := l.a.acquire(l.lock, 2*time.Second)
	if l.a.proxy.unlost() > 0 {
		l.a.proxy.lose(0)
		if nth == 1 {
			l.broken = "the client needs no answer"
		}
		return
	}
	heard := strings.TrimSpace(got.Event + " " + short(got.Text))
	l.facts = "the client gets " + heard + ", the lock stays taken for "
	if got.Event == "held" {
		if l.heldByBoth() {
			return
		}
		l.facts = "granted by a retry, after the release the lock stays taken for "
	}
	began := time.Now()
	next := l.b.acquire(l.lock, l.b.b.sys.freesWithin())
	l.facts += seconds(time.Since(began))
	if l.taken = next.Event != "held"; l.taken {
		l.facts += " or more"
	}
}

// heldByBoth asks for the lock that a believes to hold, and has a release it.
func (l *loss) heldByBoth() bool {
	if l.b.acquire(l.lock, ttl+time.Second).Event != "held" {
		l.a.release()
		return false
	}
	if believes := l.a.believes(ttl); believes >= time.Second {
		l.twice = true
		l.facts = "granted by a retry, and a second client holds it too"
		return true
	}
	l.facts = "granted by a retry, and lost when another is granted it"
	return true
}

// short keeps a message within a line.
func short(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 80 {
		return line[:80] + "…"
	}
	return line
}
