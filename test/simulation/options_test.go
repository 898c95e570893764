package simulation

import (
	"encoding/json"
	"math/rand/v2"
	"time"
)

// options are what a seed says of its history. They are printed when it fails.
type options struct {
	Seed       uint64
	Replicas   int
	Clients    int
	Operations int // that clients begin
	Faults     int
	Locks      int
	Length     time.Duration // in which operations and faults begin

	Latency time.Duration // the usual one, of each way
	Slow    int           // messages of a thousand that take up to a second
	Lost    int           // requests of a thousand that never arrive
	Unheard int           // answers of a thousand that never arrive
	Late    int           // writes of a thousand that arrive seconds or minutes later
	Full    int           // writes of a thousand to which the store says that it is full
	Joined  int           // writes of a hundred that wait for the next, to share a transaction

	Named        int // clients of a hundred that give a name
	Keyed        int // acquires of a hundred with an idempotency key
	Twice        int // of those: that are sent to two replicas at once
	Sets         int // acquires of a hundred for several locks
	Tries        int // acquires of a hundred that do not wait
	ExpiryRecord time.Duration
	Restored     bool // the store goes back to a copy while replicas run
	Async        int  // percent of waiting acquires that the replicas keep
	Asks         int  // percent of waiting acquires that ask the holders to finish
	Newest       int  // percent of waiting acquires that give way to a later one with it
	Closures     int  // that an operator makes
	Pools        int  // acquires of a hundred that want any of several locks
	Webhooks     bool // the replicas send webhooks
	Unwell       int  // attempts of a hundred that the receivers do not take as they should
}

func expand(seed uint64) options {
	r := rand.New(rand.NewPCG(seed, 1))
	between := func(least, most int) int { return least + r.IntN(most-least+1) }
	o := options{
		Seed: seed, Replicas: between(2, 3), Clients: between(6, 8), Operations: between(60, 80),
		Faults: between(10, 14), Locks: between(2, 4),
		Length:  time.Duration(between(20, 60)) * time.Second,
		Latency: time.Duration(between(1, 20)) * time.Millisecond, Named: between(0, 100),
		Keyed: between(20, 90), Twice: between(0, 40), Sets: between(0, 40), Tries: between(10, 50),
	}
	if r.IntN(4) > 0 {
		o.Slow, o.Lost, o.Unheard, o.Late = between(0, 30), between(0, 30), between(0, 30), between(0, 30)
	}
	if r.IntN(2) > 0 {
		o.ExpiryRecord = time.Duration(between(1, 1000)) * time.Millisecond
	}
	o.Restored = r.IntN(4) == 0
	if r.IntN(2) == 0 {
		o.Async = between(10, 60)
	}
	if r.IntN(2) == 0 {
		o.Asks = between(10, 60)
	}
	if r.IntN(3) > 0 {
		o.Joined = between(10, 90)
	}
	if r.IntN(2) == 0 {
		o.Closures = between(2, 8)
	}
	if o.Webhooks = r.IntN(16) == 0; o.Webhooks {
		o.Restored, o.Async, o.Unwell = false, between(40, 90), between(0, 60)
	}
	if r.IntN(2) == 0 {
		o.Full = between(1, 30)
	}
	if r.IntN(3) == 0 {
		o.Newest = between(20, 90)
	}
	if r.IntN(2) == 0 {
		o.Pools = between(10, 60)
	}
	return o
}

func (o options) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}
