package main

// formBugs break what keeps an earlier version from misreading what a later one stored.
func formBugs() []Bug {
	older := "^form$/^an_older_version_stops_granting_when_it_would_misread$"
	return []Bug{
		{
			Name: "form-newer-is-damaged", Breaks: "an entry that is not understood is not taken for a damaged one",
			File: "store/value.go", Anchor: "if v.Form > understood {", Becomes: "if v.Form > Form+understood {",
			In: "./store", Run: "^TestForm$",
		},
		{
			Name: "form-kept-without", Breaks: "an entry that the replicas keep says that it is one",
			File: "store/form.go", Anchor: "\tcase e.Async:\n", Becomes: "\tcase e.Async && e.Number != 0:\n",
			In: "./store", Run: "^TestForm$|^TestRoundTrip$",
		},
		{
			Name: "form-not-judged", Breaks: "what meta asks for is held against what is understood",
			File: "store/trust.go", Anchor: "\tcase newer != nil:\n", Becomes: "\tcase newer != nil && r.Form == 0:\n",
			In: "./store", Run: "^TestTrustInAForm$",
		},
		{
			Name: "form-not-put-back", Breaks: "the form in meta is only ever raised",
			File: "store/trust.go", Anchor: "needed > r.Form {", Becomes: "needed > Form+r.Form {",
			In: "./store/etcd", Run: "^TestFormByHand$", Needs: "etcd",
		},
		{
			Name: "etcd-form-not-recorded", Breaks: "meta says the form before an entry has it",
			File: "store/etcd/store.go", Anchor: "if err := s.require(ctx, store.FormOf(e)); err != nil {", Becomes: "if err := s.require(ctx, 1); err != nil {",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/" + older,
		},
		{
			Name: "etcd-form-met-and-forgotten", Breaks: "who has met an entry that it does not understand grants nothing",
			File: "store/etcd/codec.go", Anchor: "if ks.trust.Meet(newer) {", Becomes: "if newer == nil {",
			In: "./store/etcd", Run: "^TestFormOfAnEntryAlone$", Needs: "etcd",
		},
		{
			Name: "etcd-form-older-version-starts", Breaks: "a version that does not understand what is stored does not start",
			File: "store/etcd/meta.go", Anchor: "\tif err == nil {\n\t\terr = mk.trust.Understands(", Becomes: "\tif err != nil {\n\t\terr = mk.trust.Understands(",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/" + older,
		},
		{
			Name: "etcd-form-made-up-stays", Breaks: "a form that nobody can read and no replica wrote does not stop them all",
			File: "store/etcd/meta.go", Anchor: "there && known.form == 0 {", Becomes: "there && known.form != 0 {",
			In: "./store/etcd", Run: "^TestMetaByHand$", Needs: "etcd",
		},
		{
			Name: "zookeeper-form-not-recorded", Breaks: "meta says the form before an entry has it",
			File: "store/zookeeper/store.go", Anchor: "if err := s.require(ctx, store.FormOf(e)); err != nil {", Becomes: "if err := s.require(ctx, 1); err != nil {",
			In: "./store/zookeeper", Run: "^TestFormByHand$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-form-newer-is-damaged", Breaks: "an entry that is not understood is not removed after a minute",
			File: "store/zookeeper/snapshot.go", Anchor: "\t\tstandIn = store.Newer\n", Becomes: "",
			In: "./store/zookeeper", Run: "^TestFormOfAnEntryAlone$", Needs: "zookeeper",
		},
		{
			Name: "form-older-replica-decides", Breaks: "a replica takes nothing back because of what it does not understand",
			File: "service/wait.go", Anchor: "if err := w.s.outdated(); err != nil {", Becomes: "if err := error(nil); err != nil {",
			In: "./service", Run: "^TestOlderReplica$",
		},
		{
			Name: "form-older-replica-is-ready", Breaks: "a replica that does not understand what is stored is not ready",
			File: "service/service.go", Anchor: "\tif err := s.outdated(); err != nil {\n", Becomes: "\tif err := error(nil); err != nil {\n",
			In: "./service", Run: "^TestOlderReplica$",
		},
		{
			Name: "etcd-form-lists-anew", Breaks: "a feed that understands a new form goes on",
			File: "store/etcd/feed.go", Anchor: "hasPrefix(rest, metaDir) && !(put && s.onlyRaises(string(rest), ev.Kv)):", Becomes: "hasPrefix(rest, metaDir):",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^form$/^a_feed_that_understands_it_goes_on$",
		},
		{
			Name: "etcd-form-raised-twice", Breaks: "a feed that is told of a form which was raised again since goes on",
			File: "store/etcd/feed.go", Anchor: "	if kv.ModRevision < s.meta.formGiven() {", Becomes: "	if kv.ModRevision < 0 {",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^resume$/^over_forms", Needs: "etcd",
		},
		{
			Name: "zookeeper-form-lists-anew", Breaks: "a feed that understands a new form goes on",
			File: "store/zookeeper/feed.go", Anchor: "w.record.Form == 0 || !f.reader", Becomes: "w.record.Form >= 0 || !f.reader",
			In: "./store/zookeeper", Run: "^TestConformance$/^form$/^a_feed_that_understands_it_goes_on$", Needs: "zookeeper",
		},
		{
			Name: "form-passed-over", Breaks: "a feed does not go on past a form that it does not understand",
			File: "store/trust.go", Anchor: "if t.Understands(form) != nil || form < int(t.needed.Load()) {", Becomes: "if form < int(t.needed.Load()) {",
			In: "./store", Run: "^TestTrustInAForm$",
		},
		{
			Name: "form-lowered-and-passed-over", Breaks: "the form in meta is only ever raised",
			File: "store/trust.go", Anchor: "|| form < int(t.needed.Load()) {", Becomes: "|| form < 0 {",
			In: "./store", Run: "^TestTrustInAForm$",
		},
	}
}
