package simulation

import (
	"time"
)

// scenario is a small history. The explorer plays all orders of it.
type scenario struct {
	name    string
	clients [][]step
	faults  []string

	closures, webhooks bool
	subscribeAt        time.Duration // from 1 s on, when the subscriptions are made
	copyAt             time.Duration // when the store is copied, if it may be restored
	expiryRecord       time.Duration
	retry              time.Duration // before a client sends a request again; 0 is 100 ms
	length             time.Duration // of the script; 0 is 12 s
	from               time.Duration // of it, when it may deviate
	doctor             func(*explorer)
}

func scenarioOf(name string) *scenario {
	for _, s := range scenarios() {
		if s.name == name || name == "" {
			return &s
		}
	}
	panic("there is no scenario " + name)
}

func (s *scenario) options() options {
	o := options{
		Replicas: 2, Locks: 2, Latency: time.Millisecond, Operations: 1, Length: scriptFrom + s.length,
		ExpiryRecord: s.expiryRecord, Webhooks: s.webhooks, Unwell: 100,
	}
	if s.length == 0 {
		o.Length = scriptFrom + 12*time.Second
	}
	if s.closures {
		o.Closures = 1
	}
	return o
}

// begin has the scenario's clients begin.
func (x *explorer) begin(w *world) {
	s := x.scenario
	x.w, w.explorer, w.Clients = w, x, len(s.clients)
	for n, script := range s.clients {
		c := &client{w: w, n: n, script: script}
		w.clients = append(w.clients, c)
		w.schedule(c.pause(), c.turn)
	}
	w.schedule(time.Second, func() { w.travel(nil) })
	if s.webhooks {
		w.schedule(time.Second+s.subscribeAt, w.subscribe)
	}
	if s.copyAt > 0 {
		w.schedule(scriptFrom+s.copyAt, func() { x.copy, x.copied = w.server.Checkpoint(), w.now() })
	}
}
