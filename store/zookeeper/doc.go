// Package zookeeper keeps Fencepost's entries in ZooKeeper.
//
// # What is where
//
//	<chroot>/fencepost/v1/
//	  entries/<shard>/<tenant>,<lock>,<id>          an entry, in its first lock, its home
//	  entries/<shard>/<tenant>,<lock>,<id>,<home>   the same in another lock of its set
//	  entries/<shard>/<tenant>,~any,<id>            the home of an entry that asks for any of its
//	                                                locks; the first version until it is narrowed
//	  entries/<shard>/<tenant>,<lock>,<id>/<lease>  its lease; the version counts renewals
//	  keys/<shard>/<tenant>,<id>                    the mark of an idempotency key
//	  epoch                                         its version names the log in use
//	  logs                                          its data names the last deleted record
//	  logs/<epoch>                                  the log; its data is the newest record, or empty
//	  logs/<epoch>/<sequence>                       a record: the changes of one transaction
//	  ended/<time>-<random>                         why entries ended, moved here from old records
//	  links/<random>                                ephemeral, one per connection that writes
//	  records/<kind>/<shard>/<tenant>,<id>          a small record
//	  lives/<random>                                a replica with bound records; the version
//	                                                counts heartbeats
//	  meta                                          the store's own record
//
// Only links are ephemeral: a session belongs to a replica and a lock does not.
//
// # Numbers
//
// Every change is one multi: it writes entries, appends a record and sets the data of the log.
// All of it has one zxid, which the answer contains, in the stat of the log. So an entry's czxid,
// its position and its fence are known without another read. Two entries of one lock never share
// a multi.
//
// A zxid is epoch<<32 | counter. It stays below 2^53 for two million elections.
//
// # Leases
//
// The first renewal makes the lease's node, below the entry's. Each later one sets its data and
// so raises its version. A replica that has seen one version for a full TTL removes the entry, by
// a delete that fails if the version has changed. If the replica has seen no lease for that long,
// it deletes the entry alone, which fails if there is a lease by now. The replica counts TTLs by
// its monotonic clock, and only while the store answers.
//
// The id of an idempotency key can be used again. Such an entry has a lease from its beginning,
// whose name is the entry's random handle. So a late delete or renewal cannot hit a later entry
// with the same id. The lease of any other entry is named "lease", and the handle is 0.
//
// Such an id, which is unique in its tenant, also has a mark. The join makes it, or fails; the
// removal replaces its content by the reason. So a join that any replica sent long ago cannot
// make an entry of a used key. The mark of a withdrawn entry also stays, and a join may replace
// exactly the version that it has read. Marks are deleted with the reasons, after 11 minutes by
// the server's clock.
//
// # Small records
//
// They are not in the log. Each write is one multi. It sets the data of the record's shard, with
// the version that was read before the record. So it excludes every other write there since,
// however late. It also sets the kind's node, whose watch reports changes. A record's version is
// its mzxid.
//
// # Parts
//
// Each of these is built on those before it, and has only the ones that it uses:
//
//	link, connector   one connection, and the one that is in use
//	tree              the store's own nodes: where they are, and their ACL
//	journal           the log: which one is in use, the newest number, the records
//	reader            entries, from their nodes and the log
//	ownRecord         the store's own record, and whether the store is trusted
//	leases            what this replica has seen of leases, and when to look again
//	feed              follows the log for all followers
//	committer         lets independent writes share a transaction
//	archive           reasons of ends that are no longer in the log
//	remover           removes entries from their queues
//	expirer           checks leases, and removes expired entries
//	joiner            puts entries into their queues
//	teller            gives followers the ends from before their views
//	upkeep            finds the log, folds it, and deletes what is old
//	Store             the contract, and the goroutines of all of these
//
// # The library
//
// go-zookeeper reconnects without end, sends requests late, and registers watches again with a
// data race. So this package uses each of its connections once. When one breaks, the package
// closes it and opens another, to another server, with addresses resolved again (see link).
// Writes check the connection's own node below links/, which the next connection deletes first.
// After that deletion no older write can run, so a read shows the outcome of a write whose answer
// was lost.
package zookeeper
