// Package batch is group commit: writes that arrive while others are in flight share the next
// transaction of a store. An adapter says what a transaction is. This package decides which
// writes share one, in which order they are sent, and how many may be pending.
package batch
