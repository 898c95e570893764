package main

import (
	"fmt"
	"math/big"
	"time"
)

// fences looks at the fences of all grants of the rows before it. Those of a lock that a server may
// lose, as its documents say, do not count.
func fences(b *bench) result {
	grants, without, repeated, fell := 0, 0, 0, 0
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	for row, h := range b.histories {
		if row == "server-killed" && !b.sys.claims("survives_restart") ||
			row == "failover" && !b.sys.claims("survives_failover") {
			continue
		}
		all := spans(h.all())
		grants += len(all)
		for i, s := range all {
			if s.fence == "" {
				without++
			}
			for _, earlier := range all[:i] {
				switch compare(earlier, s) {
				case 0:
					repeated++
				case 1:
					fell++
				}
			}
		}
	}
	if grants == 0 {
		b.giveUp("no other row had a grant")
	}
	facts := fmt.Sprintf("%d grants, %d without a fence", grants, without)
	if without < grants {
		facts += fmt.Sprintf(", %d times one that another had, %d times a lower one", repeated, fell)
	}
	return b.verdict(facts, shown{"fence", without+repeated+fell == 0})
}

// compare returns 0 if two grants of a lock have one fence, and 1 if the later has a lower one. The
// order of two grants is known if the first had ended, or was a second earlier.
func compare(first, later span) int {
	a, ok := new(big.Int).SetString(first.fence, 10)
	b, isNumber := new(big.Int).SetString(later.fence, 10)
	if !ok || !isNumber || first.lock != later.lock {
		return -1
	}
	if a.Cmp(b) > 0 && first.to > later.from && later.from-first.from < time.Second {
		return -1
	}
	return a.Cmp(b)
}

// cost counts what waiters send and receive behind a holder.
func cost(b *bench) result {
	lock := b.lockName("")
	b.clients("A")[0].hold(lock)
	waiters := b.clients("1", "2", "3", "4", "5")
	for _, c := range waiters {
		c.begin(lock, time.Minute)
	}
	pause(2 * time.Second) // until they only wait
	before := b.measure(waiters)
	pause(5 * time.Second)
	after := b.measure(waiters)
	per := float64(len(waiters)) * after.at.Sub(before.at).Seconds()
	facts := fmt.Sprintf("%.1f messages and %.0f bytes", float64(after.messages-before.messages)/per,
		float64(after.bytes-before.bytes)/per)
	if b.server != nil {
		cpu := 1000 * (after.cpu - before.cpu).Seconds() / per
		facts += fmt.Sprintf(", %.1f ms of the server's processor", cpu)
	}
	return b.verdict(facts + " for each waiter and second")
}

// used is what clients and their server have used until then.
type used struct {
	at              time.Time
	messages, bytes int
	cpu             time.Duration
}

func (b *bench) measure(clients []*client) used {
	u := used{at: time.Now()}
	for _, c := range clients {
		messages, bytes, _ := c.proxy.count()
		u.messages, u.bytes = u.messages+messages, u.bytes+bytes
	}
	if b.server != nil {
		u.cpu = b.server.cpu()
	}
	return u
}
