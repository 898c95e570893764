// Package batch is group commit: writes that arrive while others are in flight share the next
// transaction of a store. The adapter defines a transaction. This package decides which writes
// share one, in which order they are sent, and how many may be pending.
package batch
