package main

import (
	"fmt"
	"math/big"
	"time"
)

// fences looks at the fences of all grants of the rows before it. Those of a lock that a server may
// lose, as its documents say, do not count.
func fences(b *bench) result {
	var all [][]span
	grants, without := 0, 0
	b.run.mu.Lock()
	for row, h := range b.histories {
		if row == "server-killed" && !b.sys.claims("survives_restart") ||
			row == "failover" && !b.sys.claims("survives_failover") {
			continue
		}
		of := spans(h.all())
		grants += len(of)
		for _, s := range of {
			if s.fence == "" {
				without++
			}
		}
		all = append(all, of)
	}
	b.run.mu.Unlock()
	if grants == 0 {
		b.giveUp("no other row had a grant")
	}
	if without == grants {
		return b.verdict(fmt.Sprintf("no fence in %d grants", grants), shown{"fence", false})
	}
	repeated, fell := 0, 0
	for _, of := range all {
		r, f := disorder(of)
		repeated, fell = repeated+r, fell+f
	}
	facts := fmt.Sprintf("%d grants, %d without a fence, %d times one that another had, %d times a lower one",
		grants, without, repeated, fell)
	return b.verdict(facts, shown{"fence", without+repeated+fell == 0})
}

// disorder counts the fences of one history that repeat, or are below that of an earlier grant. Of
// two grants the order is known if the first had ended, or was a second earlier.
func disorder(all []span) (repeated, fell int) {
	for i, first := range all {
		a, ok := new(big.Int).SetString(first.fence, 10)
		for _, later := range all[i+1:] {
			b, isNumber := new(big.Int).SetString(later.fence, 10)
			if !ok || !isNumber || first.lock != later.lock {
				continue
			}
			switch a.Cmp(b) {
			case 0:
				repeated++
			case 1:
				if first.to <= later.from || later.from-first.from > time.Second {
					fell++
				}
			}
		}
	}
	return repeated, fell
}

// cost counts what waiters send and receive behind a holder.
func cost(b *bench) result {
	const waiters, lasts = 5, 5 * time.Second
	lock := b.lockName("")
	holder := b.clients("A")[0]
	holder.hold(lock)
	all := b.clients("1", "2", "3", "4", "5")
	for _, c := range all {
		c.begin(lock, time.Minute)
	}
	pause(2 * time.Second) // until they only wait
	messages, bytes := traffic(all)
	cpu := b.cpu()
	began := time.Now()
	pause(lasts)
	after, bytesAfter := traffic(all)
	per := waiters * time.Since(began).Seconds()
	facts := fmt.Sprintf("%.1f messages and %.0f bytes", float64(after-messages)/per,
		float64(bytesAfter-bytes)/per)
	if b.server != nil {
		facts += fmt.Sprintf(", %.1f ms of the server's processor", (b.cpu()-cpu).Seconds()*1000/per)
	}
	return b.verdict(facts + " for each waiter and second")
}

func (b *bench) cpu() time.Duration {
	if b.server == nil {
		return 0
	}
	return b.server.cpu()
}

func traffic(all []*client) (messages, bytes int) {
	for _, c := range all {
		m, n := c.proxy.count()
		messages, bytes = messages+m, bytes+n
	}
	return messages, bytes
}
