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
	}
}
