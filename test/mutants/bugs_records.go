package main

// recordsBugs break what small records promise.
func recordsBugs() []Bug {
	return []Bug{
		{
			Name: "replicas-not-listed", Breaks: "a server is on the list of those that serve its store",
			File: "cmd/api/run.go", Anchor: "defer list(replicas, s)()", Becomes: "list(replicas, s)()",
			In: "./cmd/api", Run: "^TestServerIsCounted$",
		},
		{
			Name: "records-lost-answer-is-refused", Breaks: "a write whose answer was lost is found again",
			File: "store/record_swap.go", Anchor: "if !w.Delete && s.Found && s.Mark == w.Mark {", Becomes: "if s.Mark == `none` {",
			In: "./store", Run: "^TestRecordLostAnswer$",
		},
		{
			Name: "records-made-twice", Breaks: "one write makes a record once, also if it was deleted meanwhile",
			File: "store/record_swap.go", Anchor: "a.unknown && w.Version == 0 && s.Guard != a.guard", Becomes: "a.unknown && w.Version == 0 && s.Guard < a.guard",
			In: "./store", Run: "^TestRecordReplacedMeanwhile$",
		},
		{
			Name: "records-refused-by-an-old-read", Breaks: "nothing is refused because a member is behind",
			File: "store/record_swap.go", Anchor: "if final != nil && !a.fresh {", Becomes: "if final != nil && a.unknown && !a.fresh {",
			In: "./store", Run: "^TestRecordOldLook$",
		},
		{
			Name: "records-certain-too-soon", Breaks: "a refusal after a lost answer says that it may have happened",
			File: "store/record_swap.go", Anchor: "\t\t\tfinal.OutcomeUnknown = a.unknown\n", Becomes: "",
			In: "./store", Run: "^TestRecordReplacedMeanwhile$",
		},
		{
			Name: "records-late-write-brings-back", Breaks: "a late write does not bring back what was deleted",
			File: "store/memory/records.go", Anchor: " || int64(s.small.deleted[w.RecordKey]) != was.Guard", Becomes: "",
			In: "./store/memory", Run: "^TestLateRecord$",
		},
		{
			Name: "records-page-without-bytes", Breaks: "a page is bounded in bytes",
			File: "store/records.go", Anchor: "len(p.Records) >= q.Limit || len(p.Records) > 0 && size > MaxRecordPageBytes", Becomes: "len(p.Records) >= q.Limit",
			In: "./store/memory", Run: "^TestRecordsConformance$/^list$/^pages_are_bounded_in_bytes$",
		},
		{
			Name: "records-life-renewed-too-late", Breaks: "what is bound to a replica that lives does not end",
			File: "store/record_life.go", Anchor: "for Pause(l.closing, RecordLife/3) == nil {", Becomes: "for Pause(l.closing, 2*RecordLife) == nil {",
			In: "./store", Run: "^TestLife$",
		},
		{
			Name: "records-life-ended-by-an-older-one", Breaks: "what is said late of a life does not count for the next",
			File: "store/record_life.go", Anchor: "if l.id == id {", Becomes: "if l.id != none {",
			In: "./store", Run: "^TestLife$",
		},
		{
			Name: "records-etcd-without-guard", Breaks: "a late write does not bring back what was deleted, on etcd",
			File: "store/etcd/records.go", Anchor: "created(key, 0), modified(guard, s.Guard))", Becomes: "created(key, 0))",
			In: "./store/etcd", Run: "^TestLateRecord$",
		},
		{
			Name: "records-etcd-gap-untold", Breaks: "a watch says changed after a gap, on etcd",
			File: "store/etcd/record_watch.go", Anchor: "\tchanged() // what came before the watch\n", Becomes: "",
			In: "./store/etcd", Run: "^TestRecordsEmbedded$/^watch$/^every_change_is_told$",
		},
		{
			Name: "records-zookeeper-without-shard", Breaks: "a late write does not bring back what was deleted, on ZooKeeper",
			File: "store/zookeeper/records.go", Anchor: "Version: int32(s.Guard)", Becomes: "Version: -1",
			In: "./store/zookeeper", Run: "^TestRecordRules$/^a_late_write_does_not_bring_back_what_was_deleted$", Needs: "zookeeper",
		},
		{
			Name: "records-zookeeper-ends-the-living", Breaks: "records end with a life only while its version is the one that was seen",
			File: "store/zookeeper/record_life.go", Anchor: "Path: r.store.root.life(life), Version: version}}}", Becomes: "Path: r.store.root.life(life), Version: -1}}}",
			In: "./store/zookeeper", Run: "^TestRecordRules$/^who_counts_up_lives$", Needs: "zookeeper",
		},
		{
			Name: "records-zookeeper-never-end", Breaks: "a record ends after its replica has stopped, on ZooKeeper",
			File: "store/zookeeper/record_life.go", Anchor: "now-before.since >= store.RecordLife", Becomes: "now-before.since >= 100*store.RecordLife",
			In: "./store/zookeeper", Run: "^TestRecords$/^life$/^ends_after_its_replica_has_stopped$", Needs: "zookeeper",
		},
		{
			Name: "records-removal-found-late", Breaks: "a removal with a record that happened late is found by the record",
			File: "store/record_swap.go", Anchor: "final.Code == lock.Lost && a.unknown:", Becomes: "final.Code == lock.Lost && a.again:",
			In: "./store", Run: "^TestRemovalFoundLate$",
		},
		{
			Name: "records-etcd-put-without-removal", Breaks: "no record is put beside a removal that does not happen, on etcd",
			File: "store/etcd/remove_put.go", Anchor: "\ttxn.Compare = append(txn.Compare, removal.compares...)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^remove_and_put$/^or_neither$", Needs: "etcd",
		},
		{
			Name: "records-zookeeper-removal-without-put", Breaks: "nothing is removed without the record beside it, on ZooKeeper",
			File: "store/zookeeper/remove.go", Anchor: "append(p.ops, r.besides...); r.held", Becomes: "append(p.ops, r.besides[:0]...); r.held",
			In: "./store/zookeeper", Run: "^TestConformance$/^remove_and_put$/^both_happen,_at_one_number$", Needs: "zookeeper",
		},
		{
			Name: "service-replica-forgotten", Breaks: "a replica that was cut off puts itself on the list again",
			File: "service/replicas.go", Anchor: "case sees && version == 0:", Becomes: "case sees && version == 0 && !r.read:",
			In: "./service", Run: "^TestReplicas$",
		},
	}
}
