// Package store is the contract between the service and the store of the entries, and what all
// adapters share: the stored form of an entry, the errors, what a store reports about itself, and
// how a feed restarts. Besides the entries a store keeps small records, under their own contract:
// [RecordStore].
//
// An adapter has only what is specific to its store. Adapters do not import each other. Each
// passes the conformance suite in storetest.
package store
