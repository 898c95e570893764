package main

// eventBugs break events, backups and what the server says of itself.
func eventBugs() []Bug {
	return []Bug{
		{
			Name:    "service-event-index-goes-on",
			Breaks:  "an event is named by its write and its index in that write",
			File:    "service/view/events.go",
			Anchor:  "*w = writing{number: number}",
			Becomes: "w.number = number",
			In:      "./service/view", Run: "^TestReplicasTellTheSameEvents$",
		},
		{
			Name:    "events-gap-in-silence",
			Breaks:  "events that the feed lost are reported as missed",
			File:    "service/events/log.go",
			Anchor:  "\t\tl.gaps = append(l.gaps, gap{",
			Becomes: "\t\t_ = append(l.gaps, gap{",
			In:      "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-behind-in-silence", Breaks: "a slow reader is told what it missed",
			File:    "service/events/subscription.go",
			Anchor:  "s.at.Compare(start.EventID) < 0",
			Becomes: "s.at.Compare(start.EventID) < 0 && s.req.After != nil",
			In:      "./service/events", Run: "^TestSlowFollower$",
		},
		{
			Name: "backup-believed", Breaks: "a backup that was damaged in transit is rejected",
			File:    "store/etcd/backup.go",
			Anchor:  "if string(end) != string(sum.Sum(nil)) {",
			Becomes: "if len(end) == 0 {",
			In:      "./store/etcd", Run: "^TestReadCopy$",
		},
		{
			Name: "restore-believes", Breaks: "a damaged backup is not restored",
			File:    "store/etcd/restore.go",
			Anchor:  "if err := checkSum(file, size); err != nil {",
			Becomes: "if err := checkSum(file, size); err != nil && size == 0 {",
			In:      "./store/etcd", Run: "^TestRestoreRefuses$/^Damaged$",
		},
		{
			Name:    "restore-forgets-the-floor",
			Breaks:  "the floor after a restore is above every fence of the backup",
			File:    "store/etcd/restore.go",
			Anchor:  "RestoredBump+own.Floor, own.Distrust)",
			Becomes: "RestoredBump, own.Distrust)",
			In:      "./store/etcd", Run: "^TestRestore$",
		},
		{
			Name: "config-prints-credentials", Breaks: "`--print-config` shows no secret",
			File:    "cmd/api/settings.go",
			Anchor:  "strconv.Quote(withoutCredentials(fl.Value.String()))",
			Becomes: "strconv.Quote(fl.Value.String())",
			In:      "./cmd/api", Run: "^TestPrintedWithoutSecrets$",
		},
	}
}
