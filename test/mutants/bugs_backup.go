package main

// backupBugs break the copies of the embedded store.
func backupBugs() []Bug {
	return []Bug{
		{
			Name: "backup-stops-the-store", Breaks: "the store is not defragmented, which stops all calls, until a backup is made",
			File: "store/etcd/room.go", Anchor: "	if !m.backups.busy.TryLock() {\n		return // a backup is being made, for whose end it would wait\n	}\n	defer m.backups.busy.Unlock()\n", Becomes: "",
			In: "./store/etcd", Run: "^TestDefragmentsAfterABackup$",
		},
		{
			Name: "backup-for-everybody", Breaks: "the socket for backups is its owner's",
			File: "store/etcd/backup_serve.go", Anchor: "os.Chmod(path, 0o600)", Becomes: "os.Chmod(path, 0o666)",
			In: "./store/etcd", Run: "^TestBackupSocket$",
		},
		{
			Name: "backup-nobody-reads", Breaks: "a backup that nobody reads is given up, so that it does not make the data file grow",
			File: "store/etcd/backup.go", Anchor: "p.SetWriteDeadline(p.until())", Becomes: "p.SetWriteDeadline(p.end)",
			In: "./store/etcd", Run: "^TestBackupEnds$/^Stalled$",
		},
		{
			Name: "backup-believed", Breaks: "a backup that was damaged on its way is refused",
			File: "store/etcd/backup.go", Anchor: "if string(told) != string(sum.Sum(nil)) {", Becomes: "if len(told) == 0 {",
			In: "./store/etcd", Run: "^TestReadCopy$",
		},
		{
			Name: "backup-replaces", Breaks: "a backup replaces no other file unless that is asked for",
			File: "cmd/api/backup.go", Anchor: "putInPlace(f.Name(), path, force)", Becomes: "putInPlace(f.Name(), path, true)",
			In: "./cmd/api", Run: "^TestWriteWhole$",
		},
		{
			Name: "restore-believes", Breaks: "a damaged backup is not restored",
			File: "store/etcd/restore.go", Anchor: "if err := checkSum(file, size); err != nil {", Becomes: "if err := checkSum(file, size); err != nil && size == 0 {",
			In: "./store/etcd", Run: "^TestRestoreRefuses$/^Damaged$",
		},
		{
			Name: "restore-ends-the-process", Breaks: "a backup with a right checksum and damaged pages is refused by an error of ours",
			File: "store/etcd/restore.go", Anchor: "if err := checkPages(file, size, inEveryCopy()...); err != nil {", Becomes: "if err := checkPages(file, size, inEveryCopy()...); err != nil && size == 0 {",
			In: "./store/etcd", Run: "^TestRestoreRefuses$/^Half$",
		},
		{
			Name: "restore-etcd-ends-the-process", Breaks: "what etcd's code ends the process for in a backup is an error",
			File: "store/etcd/restore.go", Anchor: "if r := recover(); r != nil {", Becomes: "if r := any(nil); r != nil {",
			In: "./store/etcd", Run: "^TestRestoreRefuses$/^NoValues$",
		},
		{
			Name: "etcd-dies-of-a-damaged-page", Breaks: "a data file that is damaged in the middle is refused before etcd dies of it",
			File: "store/etcd/damaged.go", Anchor: "return tx.ForEach(checkBucket)", Becomes: "return nil",
			In: "./store/etcd", Run: "^TestDamagedData$/^InTheMiddle$",
		},
		{
			Name: "etcd-dies-of-a-damaged-log", Breaks: "a log that etcd panics over is refused by an error of ours",
			File: "store/etcd/embedded.go", Anchor: "launch(memberConfig(cfg))", Becomes: "embed.StartEtcd(memberConfig(cfg))",
			In: "./store/etcd", Run: "^TestDamagedData$/^EmptyLog$",
		},
		{
			Name: "restore-over-a-store", Breaks: "a backup is restored into an empty folder only",
			File: "store/etcd/restore.go", Anchor: "if err := checkEmpty(dir); err != nil {", Becomes: "if err := checkEmpty(dir); err != nil && dir == \"\" {",
			In: "./store/etcd", Run: "^TestRestoreRefuses$/^NotEmpty$",
		},
		{
			Name: "restore-forgets-what-was-lost", Breaks: "the floor to use after a restore is above what a store that lost its past had reached",
			File: "store/etcd/restore.go", Anchor: "RestoredBump+m.floor, m.distrust)", Becomes: "RestoredBump+m.floor, 0*m.distrust)",
			In: "./store/etcd", Run: "^TestRestoreOfADistrusted$", Needs: "etcd",
		},
		{
			Name: "restore-forgets-the-floor", Breaks: "the floor to use after a restore is above the fences of the backup, with the floor that these had",
			File: "store/etcd/restore.go", Anchor: "RestoredBump+m.floor, m.distrust)", Becomes: "RestoredBump, m.distrust)",
			In: "./store/etcd", Run: "^TestRestore$",
		},
		{
			Name: "move-forgets-the-floor", Breaks: "ZooKeeper begins above the fence floor that it is given",
			File: "cmd/api/store.go", Anchor: "Password: c.storePass,\n\t\tLogger: t.Logger(), FenceFloor: c.fenceFloor,", Becomes: "Password: c.storePass,\n\t\tLogger: t.Logger(),",
			In: "./test/faults", Run: "^TestMoved$", Needs: "zookeeper",
		},
		{
			Name: "backup-takes-a-place", Breaks: "a backup replaces no file that came meanwhile",
			File: "cmd/api/backup.go", Anchor: "\tif force {\n", Becomes: "\tif force || from != \"\" {\n",
			In: "./cmd/api", Run: "^TestPutInPlace$",
		},
	}
}
