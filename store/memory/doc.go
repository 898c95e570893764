// Package memory is the store of tests and of the simulation. A [Server] keeps one history of
// entries in memory, and each replica has its own [Client].
//
// It implements all of [store.Store], as the conformance suite shows, and has the difficulties of
// a store behind a network. Requests travel over a [Wire] that may lose them, lose their answers,
// or deliver them long after the client has given up. The client follows the adapters' rules: it
// repeats a write under another lease, every write compares, and abandoned writes are excluded
// before anything else can build on their absence.
//
// Leases end by timers. In a bubble of testing/synctest everything happens at its exact time. The
// server keeps what it need not drop, so it is not for long runs.
package memory
