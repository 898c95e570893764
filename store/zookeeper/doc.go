// Package zookeeper keeps Fencepost's entries in ZooKeeper.
//
// # What is where
//
//	<chroot>/fencepost/v1/
//	  entries/<shard>/<tenant>,<lock>,<id>          an entry, in its first lock
//	  entries/<shard>/<tenant>,<lock>,<id>,<first>  the same in another lock of its set
//	  entries/<shard>/<tenant>,<lock>,<id>/<lease>  its lease; the version counts renewals
//	  keys/<shard>/<tenant>,<id>                    the mark of an idempotency key
//	  epoch                                         its version names the log in use
//	  logs                                          its data says which record was deleted last
//	  logs/<epoch>                                  the log; its data is the newest record, or empty
//	  logs/<epoch>/<sequence>                       a record: the changes of one transaction
//	  ended/<time>-<random>                         why entries went, moved here from old records
//	  links/<random>                                ephemeral, one per connection that writes
//	  records/<kind>/<shard>/<tenant>,<id>          a small record
//	  lives/<random>                                a replica with bound records; the version
//	                                                counts heartbeats
//	  meta                                          what the store remembers about itself
//
// Only links are ephemeral: a session belongs to a replica and a lock does not.
//
// # Numbers
//
// Every change is one multi: it writes entries, appends a record and sets the
// data of the log. All that has one zxid, which is in the answer, in the stat of the log. So
// an entry's czxid, its position and its fence are known without another read. Two entries of
// one lock never share a multi.
//
// A zxid is epoch<<32 | counter. It stays below 2^53 for two million elections.
//
// # Leases
//
// The first renewal makes the lease's node, below the entry's, and each one after
// it sets its data and so raises its version. A replica that has seen one version
// for a full TTL removes the entry, by a delete that fails if the version has
// changed. If it has seen no lease for so long it deletes the entry alone, which
// fails if there is one by now. The replica counts TTLs by its monotonic clock,
// and only while the store answers.
//
// An id may come again if it stands for an idempotency key. Such an entry has a
// lease from its beginning, with the entry's handle as its name, which is random, so
// that a delete or a renewal that is late cannot hit a later entry with the same id.
// The lease of any other entry is named "lease", and the handle is 0.
//
// Such an id, which is one of its tenant, also has a mark. The join makes it, or fails;
// the removal replaces what is in it by the reason. So a join that was sent long ago, by
// whichever replica, cannot make an entry of a key that is used up. The mark of an entry
// that was withdrawn stays too, and a join may replace the very version that it has seen.
// Marks go with the reasons, after 11 minutes by the server's clock.
//
// # Small records
//
// They have no part in the log. Each write is one multi that sets the data of the
// record's shard over the version that was read before the record, and so excludes
// every other write there since, however late it comes; and it sets the kind's node,
// whose watch says that something changed. A record's version is its mzxid.
//
// # Parts
//
// Each of these is built on those before it, and has no more of them than it uses:
//
//	link, connector   one connection, and the one that is in use
//	tree              the store's own nodes: where they are, and their ACL
//	journal           the log: which one is in use, the newest number, what records say
//	reader            entries, from their nodes and the log
//	metaKeeper        the store's own record, and whether the store is trusted
//	leases            what this replica has seen of leases, and when to look again
//	feed              follows the log for all followers
//	committer         lets independent writes share a transaction
//	archive           reasons of ends that the log has no longer
//	remover           takes entries out of their queues
//	expirer           looks at leases, and removes expired entries
//	joiner            puts entries into their queues
//	teller            gives followers the ends from before their views
//	upkeep            finds the log, folds it, and deletes what is old
//	Store             the contract, and the goroutines of all of these
//
// # The library
//
// go-zookeeper keeps a connection alive for ever, sends late what it could not
// send in time, and registers watches again in a way that is a data race. Here
// every connection of its is used once: when it breaks it is closed and another
// one opened, to another server, with addresses resolved anew (see link). Writes
// carry a check of the connection's own node below links/, which the next
// connection deletes first: what was not executed by then never will be, so that
// reading tells the outcome of a write whose answer was lost.
package zookeeper
