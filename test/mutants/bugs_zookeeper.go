package main

// zookeeperBugs break what the store on ZooKeeper promises.
func zookeeperBugs() []Bug {
	return []Bug{
		{
			Name: "zookeeper-fold-too-large", Breaks: "no request is larger than what a server takes",
			File: "store/zookeeper/fold.go", Anchor: "n > 0 && (ends > foldEnds || bytes > foldBytes)", Becomes: "n < 0",
			In: "./store/zookeeper", Run: "^TestFoldManyEnds$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-repeated-for-ever", Breaks: "a request that the server hangs up on is not repeated as it is",
			File: "store/zookeeper/fold.go", Anchor: "f.hangUps, f.cut = 0, f.cut+1", Becomes: "f.hangUps = 0",
			In: "./store/zookeeper", Run: "^TestFoldIsSplit$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-on-the-feeds-connection", Breaks: "the upkeep does not interrupt the feed",
			File: "store/zookeeper/fold.go", Anchor: "checks ...any) error {\n\tl, err := s.chores.get(ctx)",
			Becomes: "checks ...any) error {\n\tl, err := s.reads.get(ctx)",
			In:      "./store/zookeeper", Run: "^TestFoldIsSplit$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-list-with-what-went", Breaks: "a list that takes long is of one moment",
			File: "store/zookeeper/list.go", Anchor: "!(went && s.ends(change{Czxid: gone}, e))", Becomes: "(!went || gone > 0)",
			In: "./store/zookeeper", Run: "^TestListUnderLoad$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-view-waits-for-reasons", Breaks: "a view does not wait for the reasons of ends",
			File: "store/zookeeper/list.go", Anchor: "\tstat, err := s.barrierOn(ctx, l)\n\tif err != nil {\n\t\treturn err\n\t}\n\tfor {\n",
			Becomes: "\tif _, err := children(ctx, l, s.root.ended()); err != nil {\n\t\treturn err\n\t}\n" +
				"\tstat, err := s.barrierOn(ctx, l)\n\tif err != nil {\n\t\treturn err\n\t}\n\tfor {\n",
			In: "./store/zookeeper", Run: "^TestReasonsComeLater$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-forget-by-a-replicas-clock", Breaks: "no replica forgets reasons by its own clock",
			File: "store/zookeeper/upkeep.go", Anchor: "if err == nil && stat.Ctime < before {",
			Becomes: "if err == nil && stat != nil && path.Base(node)[:13] < strconv.FormatInt(before, 10) {",
			In:      "./store/zookeeper", Run: "^TestForgetByTheServersClock$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-list-starts-leases-anew", Breaks: "a bad connection does not keep dead entries",
			File: "store/zookeeper/leases.go", Anchor: "e == nil || e.Number != l.entry.Number || e.Handle != l.entry.Handle {",
			Becomes: "e == nil || e.Number == l.entry.Number {",
			In:      "./store/zookeeper", Run: "^TestExpiresOnABadConnection$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-all-read-all-leases", Breaks: "replicas share the reading of leases",
			File: "store/zookeeper/team.go", Anchor: "return before < watchers", Becomes: "return before >= 0",
			In: "./store/zookeeper", Run: "^TestReplicasShareLeases$", Needs: "zookeeper",
		},
	}
}
