package main

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
	Does    string  `json:"does"`
	Verdict verdict `json:"verdict"`
	Facts   string  `json:"facts"`
	Seconds float64 `json:"seconds"`
}

const lastPhase = 7

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
		{"order", "Six clients queue, a second apart: granted in that order?", 1, noServer, order},
		{"dead-waiter", "One waiter dies, one gives up: is the next one granted?", 2, noServer, deadWaiter},
		{"dead-holder", "kill -9 of the holder: when is the next one granted?", 2, noServer, deadHolder},
		{"fences", "The fences of all grants: there, and growing?", lastPhase, noServer, fences},
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
