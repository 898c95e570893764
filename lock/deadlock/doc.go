// Package deadlock finds who waits for ever: a wait-for graph of holders that name
// themselves, over the queues of a [lock.Table]. What it finds is a function of the
// entries that are there, so replicas that see the same entries agree without talking to
// each other. Like package lock it does no I/O and reads no clock.
package deadlock
