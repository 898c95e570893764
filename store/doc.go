// Package store is the contract between the service and whatever keeps the
// entries, and what all adapters have in common: the stored form of an entry, the
// errors, what they tell of themselves, and how a feed starts over. Beside the
// entries a store keeps small records, by a contract of their own: [RecordStore].
//
// An adapter is only what is peculiar to its store. Adapters do not import each
// other. Each passes the conformance suite in storetest.
package store
