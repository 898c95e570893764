// Package simulation runs histories of several replicas of the service on the
// in-memory store, in virtual time, with everything going wrong that a network, a
// store's feed and clocks can do, and checks each.
//
// One goroutine decides. Every request of a replica to its store, and every step of
// its feed, is put into a queue; when nothing in the bubble can run any more, what
// arrived is put in order and given a time, and at each virtual instant one thing
// happens. A seed so gives the same history each time.
//
// The explorer plays small histories in the same world, in every order, see
// docs/internals/explore.md.
package simulation
