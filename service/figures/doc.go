// Package figures keeps how locks were used, as one replica saw it since it started: the
// figures, events and signs of short leases of the locks that were used last, and what happened
// to each tenant in the last quarter of an hour. Nothing is decided by it. It reads no clock.
package figures
