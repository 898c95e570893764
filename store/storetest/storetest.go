// Package storetest is the conformance suite of the stores: what store.Store
// promises, as tests that every adapter passes. An adapter's own test file opens
// the store and calls [Run]; it does not repeat the suite.
//
// Every case has a store of its own, empty, with two independent clients, as two
// replicas would have them. A case judges what one client did by what the other
// one sees. Nothing sleeps: cases poll with a deadline, and those that have to
// wait for leases overlap.
//
// What the suite cannot see: durability over a crash, elections, and faults
// below TCP. Those need processes to kill and belong to the tests from outside.
package storetest

import (
	"cmp"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
)

// Harness is what an adapter's test file brings.
type Harness struct {
	// Open gives one case its store. It closes everything by t.Cleanup.
	Open func(t *testing.T) Store

	// OpenStrict is Open with the deadlines that calls have in production, for cases in
	// which the store has too much to do; nil is Open. What others ask for may take longer,
	// on a busy machine.
	OpenStrict func(t *testing.T) Store

	// OpenCut is Open for cases in which client B is cut off: its calls end after less than
	// CutLimit, which leaves a busy machine more time than production does; nil is Open
	// with CallLimit.
	OpenCut  func(t *testing.T) Store
	CutLimit time.Duration

	// MinTTL is the shortest lease that the store keeps to.
	MinTTL time.Duration

	// Late is how long after the end of its lease an entry may still be there; 0
	// is 15 s, as a cluster that elects a leader restarts its leases.
	Late time.Duration

	// CallLimit is how long a call may take at most when the store does not
	// answer; 0 is 5 s.
	CallLimit time.Duration

	// OpenAlone gives a case a store on a server of its own, with Backup.
	OpenAlone func(t *testing.T) Store

	// NoCut, NoCompact, NoFloor and NoBackup say why there is no CutB, Compact,
	// OpenFloor or OpenAlone. The cases that need them do not run then; without a
	// reason they fail.
	NoCut, NoCompact, NoFloor, NoBackup string

	// NoHistory says why a feed that was interrupted lists again.
	NoHistory string

	// NoEarlier says why no feed can begin earlier.
	NoEarlier string

	// NoBound says why the store admits any number of writes at once.
	NoBound string
}

// Store is an empty store with two clients that share nothing but the store.
type Store struct {
	A, B store.Store

	// Records returns the small records of a client.
	Records func(s store.Store) store.RecordStore

	// Reopen returns one more client, as a replica that starts later has.
	Reopen func(t *testing.T) store.Store

	// CutB cuts client B off from the store until restore is called.
	CutB func(t *testing.T, how Fault) (restore func())

	// OpenFloor is Reopen with a fence floor that the operator gives; 0 is none.
	OpenFloor func(t *testing.T, floor uint64) (store.Store, error)

	// SetForm records another form of the stored data, as another version of the server does.
	SetForm func(t *testing.T, form int)

	// Backup copies the store's data. restore puts the copy in its place, as an
	// operator would who restores a backup while clients run.
	Backup func(t *testing.T) (restore func(t *testing.T))

	// Compact makes the store forget all history that it can do without.
	Compact func(t *testing.T)
}

// testCase is one named promise.
type testCase struct {
	name  string
	run   func(*trial)
	needs need
	// it keeps the store so busy that the deadlines of others would pass, or needs it undisturbed
	alone bool

	// inTime: it is about how soon calls end, which have the deadlines of production.
	inTime bool
}

// need is an ability that not every harness has.
type need int

const (
	nothing need = iota
	cut
	compact
	floors
	backup
	earlier
	cutHistory
)

// Run checks everything that store.Store promises.
func Run(t *testing.T, h Harness) {
	if h.Late == 0 {
		h.Late = 15 * time.Second
	}
	if h.CallLimit == 0 {
		h.CallLimit = 5 * time.Second
	}
	for _, c := range cases() {
		if why := h.absent(c.needs); why != "" {
			t.Logf("%s does not run: %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if !c.alone { // those that are go first, one after the other
				t.Parallel()
			}
			c.run(newTrial(t, h, c))
		})
	}
}

func (h Harness) absent(n need) string {
	switch n {
	case cut:
		return h.NoCut
	case compact:
		return h.NoCompact
	case floors:
		return h.NoFloor
	case backup:
		return h.NoBackup
	case earlier:
		return h.NoEarlier
	case cutHistory:
		return cmp.Or(h.NoCut, h.NoHistory)
	}
	return ""
}

// cases puts those that wait for leases first, so that the others fill the time.
func cases() []testCase {
	var all []testCase
	for _, topic := range [][]testCase{
		trustCases(), expiryCases(), renewCases(), cutCases(), burstCases(), enqueueCases(), keyCases(),
		orderCases(), fenceCases(), removeCases(), removePutCases(), readCases(), feedCases(),
		modeCases(), setCases(), tenantCases(), contextCases(), distrustCases(), formCases(), pastCases(),
		resumeCases(), closureCases(), narrowCases(),
	} {
		all = append(all, topic...)
	}
	return all
}
