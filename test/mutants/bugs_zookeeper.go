package main

// zookeeperBugs break the ZooKeeper adapter.
func zookeeperBugs() []Bug {
	return []Bug{
		{
			Name:    "zookeeper-key-without-mark",
			Breaks:  "a late write cannot use a used-up key again",
			File:    "store/zookeeper/join.go",
			Anchor:  "j.claim(e, taken), ",
			Becomes: "",
			In:      "./store/zookeeper", Run: "^TestLateCreate$",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-number-of-an-end",
			Breaks:  "an end has the number of the write that removed its entry",
			File:    "store/zookeeper/feed.go",
			Anchor:  "Number: r.number(w.zxid), Left",
			Becomes: "Number: e.Number, Left",
			In:      "./store/zookeeper", Run: "^TestConformance$/^feed$/^changes_have_the_numbers",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-lease-of-any-entry",
			Breaks:  "a stale replica removes no later entry of the same key",
			File:    "store/zookeeper/layout.go",
			Anchor:  "if handle == 0 {",
			Becomes: "if handle >= 0 {",
			In:      "./store/zookeeper", Run: "^TestStaleReplicaRemovesNoLaterEntry$",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-earlier-connection-alive",
			Breaks:  "a request of a broken connection is not executed later",
			File:    "store/zookeeper/nodes.go",
			Anchor:  "for len(s.stale.paths) > 0 {",
			Becomes: "for false {",
			In:      "./store/zookeeper", Run: "^TestWriteOfAnEarlierConnection$",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-queue-of-the-past",
			Breaks:  "a queue is no older than the call that reads it",
			File:    "store/zookeeper/snapshot.go",
			Anchor:  "from, err := r.barrierOn(ctx, l)",
			Becomes: "from, err := r.readHead(ctx, l, snap.epoch)",
			In:      "./store/zookeeper", Run: "^TestQueueOfALateFollower$",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-expires-what-was-renewed",
			Breaks:  "a holder that has just renewed keeps its lock",
			File:    "store/zookeeper/remove.go",
			Anchor:  "\t\t\tversion = r.version\n",
			Becomes: "",
			In:      "./store/zookeeper", Run: "^TestRenewedSinceTheLook$",
			Needs: "zookeeper",
		},
	}
}
