// Package service holds Fencepost's use cases: acquire, wait, renew, release and look. It knows
// neither HTTP nor etcd.
//
// A replica follows the store's feed into one [view] of all queues. Waiting requests wait on the
// view, not on the store, so they cost the store nothing. Listings read the view too.
//
// The view may be stale, but it is never wrong about the holder. An entry at the head of its
// queue in the view is the holder, however old the view is. A number below the entry's own can
// never appear later ("once head, always head").
//
// The service does not promise that a holder is still alive, or that a grant arrives in time. It
// promises that the store never has two holders at one number, and that fences grow.
package service
