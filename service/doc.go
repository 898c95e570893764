// Package service holds Fencepost's use cases: acquire, wait, renew, release and
// look. It knows neither HTTP nor etcd.
//
// A replica follows the store's feed into one [view] of all queues. Waiting
// requests wait on the view, not on the store, so that any number of them costs
// the store nothing, and listings read it too. The view may be late; it can
// never be wrong about who holds: an entry that is seen at the head of its queue
// is the holder, however old the view is, because a number below its own can
// never appear later ("once head, always head").
//
// What the service does not promise: that a holder is still alive, or that a
// grant arrives in time. It promises that the store never has two holders at one
// number, and that fences grow.
package service
