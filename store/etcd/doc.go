// Package etcd keeps Fencepost's entries in etcd: a member inside the process or a cluster
// outside.
//
// Every entry is its own key under entries/<tenant>/<lock>/<id>. A set has one such key for each
// lock, all written by one transaction. A key is put once, bound to a lease and deleted once. Its
// number is the revision of that put. The transaction that deletes it also writes the reason
// under ended/; a delete without a reason is an expired lease.
//
// Writes of independent requests share transactions ([committer]), under one rule: never two
// entries of one lock, because they would share a revision and have no order between them. If a
// comparison fails, the committer sends the writes again as nested transactions, so that each
// comparison decides about its own write only.
//
// An abandoned write may commit much later. So each put is compared with "not there", and with the
// key of its replica ([writer]). After an unknown outcome the replica deletes that key. Nothing
// that was sent before can happen any more, so no late write brings an entry back, and a read shows
// what became of it (settle in store/engine/join.go). Each attempt has its own lease, which ends
// with it.
//
// What it does not use, and why: concurrency.Mutex and Session (etcd #22082: a retried unlock
// deletes a newer lock; #19597: a waiter whose session expired waits on), clientv3's automatic
// keepalive (it renews for clients that are gone), serializable reads, and ranges on the path of
// a request (a prefix of unique keys is full of tombstones until compaction, and a range walks
// them all).
package etcd
