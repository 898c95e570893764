package main

import "time"

// row is one question that the test asks of every lock.
type row struct {
	id    string
	does  string
	phase int // rows of one phase run at once, with locks of their own
	needs need
	judge func(*bench) result
}

// need is what a row cannot be run without.
type need int

const (
	noServer  need = iota
	anyServer      // reached over TCP
	ownServer      // started by the harness
)

type verdict string

const (
	good       verdict = "ok"
	bad        verdict = "fails"
	notClaimed verdict = "not claimed"
	notRun     verdict = "not run"
)

// result is a row's answer for one system.
type result struct {
	Row     string  `json:"row"`
	Verdict verdict `json:"verdict"`
	Facts   string  `json:"facts"`
	Seconds float64 `json:"seconds"`
	Failed  int     `json:"failed,omitempty"` // of so many runs
	Runs    int     `json:"runs,omitempty"`
}

// rows are in the order of the table that people read.
func rows() []row {
	return []row{
		{"together", "Eight clients take one lock 40 times: two holders at once?", 1, noServer, together},
		{"paused", "A holder is stopped past its TTL and resumed: its late write?", 2, noServer, paused},
		{"server-killed", "kill -9 of the server under a holder, and a restart.", 5, ownServer, serverKilled},
		{"failover", "The primary dies before its replica has the lock.", 6, ownServer, failover},
		{"answer-lost", "The network cuts after the request, before the answer.", 3, anyServer, answerLost},
		{"late-release", "A release arrives after another client acquired.", 2, anyServer, lateRelease},
		{"clock", "A client's clock jumps by an hour.", 3, noServer, clock},
		{"order", "Six clients queue, a second apart: are they granted in that order?", 1, noServer, order},
		{"dead-waiter", "One waiter dies, one gives up: is the next one granted?", 2, noServer, deadWaiter},
		{"dead-holder", "kill -9 of the holder: when is the next one granted?", 2, noServer, deadHolder},
		{"fences", "The fences of all grants: there, and growing?", 7, noServer, fences},
		{"cost", "What five clients send and receive while they wait.", 4, anyServer, cost},
	}
}

// shown is whether a row found what the system claims.
type shown struct {
	claim string
	good  bool
}

// verdict: only what the system claims can fail.
func (b *bench) verdict(facts string, all ...shown) result {
	v := good
	for _, s := range all {
		switch {
		case s.good:
		case b.sys.claims(s.claim):
			return result{Verdict: bad, Facts: facts}
		default:
			v = notClaimed
		}
	}
	return result{Verdict: v, Facts: facts}
}

// missing returns why a row cannot be run, or "".
func (r *run) missing(n need) string {
	switch {
	case n >= anyServer && r.address == "":
		return "there is no server"
	case n == ownServer && r.server == nil:
		return "the harness did not start the server"
	}
	return ""
}

// play runs a row with a history of its own.
func (r *run) play(w row) (result, *history) {
	b := &bench{run: r, row: w.id, ttl: ttl, history: &history{began: time.Now()}}
	res := result{Verdict: notRun, Facts: r.missing(w.needs)}
	if res.Facts == "" {
		done := make(chan result, 1)
		go func() {
			defer close(done) // giveUp leaves it without a result
			done <- w.judge(b)
		}()
		judged, ok := <-done
		if res = judged; !ok {
			res = result{Verdict: notRun, Facts: b.reason}
		}
	}
	b.end()
	res.Row, res.Seconds = w.id, time.Since(b.began).Seconds()
	return res, b.history
}
