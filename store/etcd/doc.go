// Package etcd keeps Fencepost's entries in etcd: a member inside the process
// or a cluster outside.
//
// Every entry is a key of its own under entries/<tenant>/<lock>/<id> (one key a
// lock for a set, all written by one transaction), put once, bound to a lease
// and deleted once. Its number is the revision of that put. The reason for a
// removal is written by the same transaction as the delete, under ended/; a
// delete without a reason is an expired lease.
//
// Writes of independent requests share transactions ([committer]), under one
// rule: never two entries of one lock, because they would share a revision and
// have no order between them. If a comparison fails they are sent again, each as a
// nested transaction, so that what it is compared with decides about itself only.
//
// A write that was given up may commit much later. So each put is compared with
// "not there", and each attempt has a lease of its own, which is revoked when another
// attempt stands or nobody waits any more ([Store.clean]): no write is left alive that
// could bring an entry back. Before an entry with a fresh id is written again, what the
// attempts before have done is read from the past ([joining.exclude]).
//
// What it does not use, and why: concurrency.Mutex and Session (etcd #22082: a
// retried unlock deletes a newer lock; #19597: a waiter whose session expired
// waits on), clientv3's automatic keepalive (it renews for clients that are
// gone), serializable reads, and ranges on the path of a request (a prefix of
// unique keys is full of tombstones until compaction, and a range walks them all).
package etcd
