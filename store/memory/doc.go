// Package memory is the store of tests and of the simulation: a [Server] keeps one
// history of entries in memory, and each replica has a [Client] of its own.
//
// It keeps to all of [store.Store], as the conformance suite shows, and it has the
// hard parts of a store behind a network: a client's requests travel over a [Wire]
// that may lose them, lose their answers, or deliver them long after the client has
// given up. The client copes with that by the rules that the adapters have: it
// repeats a write under another lease, every write compares, and what was given up
// is excluded before anything else can build on its absence.
//
// Leases end by timers. In a bubble of testing/synctest everything so happens at
// its exact time. Nothing here forgets what it does not have to, so a server is
// not for long runs.
package memory
