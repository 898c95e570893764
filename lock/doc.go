// Package lock is Fencepost's domain: what an entry is, in which order entries
// stand, and which of them hold.
//
// Every acquisition is one [Entry]. The store writes it once, gives it a number
// that only grows, and removes it once. No replica ever writes "granted": which
// entries hold is a pure function of the entries that are there, in the order of their
// numbers ([Queue], [Table]). So there is no grant to lose in a crash and no
// half-finished hand-over. The exception is an entry that wants any of several locks: it
// holds after one write has taken it out of the other queues ([Entry.Choosing]).
//
// The number is the entry's place and its fence at once. At every number at
// most one exclusive entry of a lock holds, and a later holder always has a
// greater number. Nothing here promises more: a lease is a guess about a clock,
// and only a resource that checks the fence is safe from a holder that was
// paused for longer than its TTL.
//
// The package does no I/O, starts no goroutine, reads no clock and takes no
// mutex. It imports the standard library alone.
package lock
