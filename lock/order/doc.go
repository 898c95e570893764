// Package order is the lock order graph: in which order named holders take locks, and
// where the orders of different holders contradict each other, so that a deadlock is
// possible although none has happened (as Linux's lockdep finds them). Like package lock
// it does no I/O and reads no clock.
package order
