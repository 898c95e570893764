package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// answerLost loses the first, second or third answer of the server to one acquire: which of them
// says that the lock is granted depends on the lock's protocol.
func answerLost(b *bench) result {
	clients := b.clients("A1", "B1", "A2", "B2", "A3", "B3")
	losses := make([]loss, 3)
	var all sync.WaitGroup
	for i := range losses {
		l := &losses[i]
		l.a, l.next, l.lock = clients[2*i], clients[2*i+1], b.lockName(fmt.Sprintf("-%d", i+1))
		// What a client does once, such as to connect, must not take the fault.
		l.a.hold(l.lock + "-warm")
		l.a.release()
		all.Go(func() { l.play(i + 1) })
	}
	all.Wait()
	var facts []string
	exclusive, freed := true, true
	for i, l := range losses {
		if l.facts != "" {
			b.granted(l.got)
			facts = append(facts, fmt.Sprintf("answer %d lost: %s", i+1, l.facts))
		}
		exclusive, freed = exclusive && !l.twice, freed && !l.taken
	}
	if len(facts) == 0 {
		b.giveUp("the client needs no answer to acquire")
	}
	return b.verdict(strings.Join(facts, "; "), shown{"exclusion", exclusive}, shown{"frees", freed})
}

// loss is one lost answer to a, and what the next client finds then.
type loss struct {
	a, next *client
	lock    string
	facts   string // "" if there is no such answer
	got     answer // to next
	twice   bool   // both held the lock
	taken   bool   // the lock stays taken
}

func (l *loss) play(nth int) {
	l.a.b.fault("answer %d to %s gets lost", nth, l.a.name)
	l.a.proxy.lose(nth)
	got := l.a.acquire(l.lock, 2*time.Second)
	if l.a.proxy.unlost() > 0 {
		l.a.proxy.lose(0)
		return
	}
	l.facts = "the client gets " + strings.TrimSpace(got.Event+" "+short(got.Text))
	if got.Event == "held" {
		l.facts = "granted by a retry"
		if l.got = l.next.acquire(l.lock, ttl+time.Second); l.got.Event == "held" {
			believes := l.a.believes(ttl)
			l.twice = believes >= time.Second
			l.facts += ", and another is granted it too; the first " + learns(believes, ttl)
			return
		}
		l.a.release()
		l.facts += ", then released"
	}
	began := time.Now()
	l.got = l.next.acquire(l.lock, l.next.b.sys.freesWithin())
	l.taken = l.got.Event == "not_held"
	l.facts += ", the lock stays taken for " + seconds(time.Since(began))
	if l.taken {
		l.facts += " or more"
	}
}
