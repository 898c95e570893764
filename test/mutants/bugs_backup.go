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
			In: "./store/etcd", Run: "^TestRestoreRefuses$/^LastWords$",
		},
		{
			Name: "etcd-dies-of-a-damaged-page", Breaks: "a data file that is damaged in the middle is refused before etcd dies of it",
			File: "store/etcd/damaged.go", Anchor: "return tx.ForEach(p.check)", Becomes: "return nil",
			In: "./store/etcd", Run: "^TestDamagedData$/^InTheMiddle$",
		},
		{
			Name: "etcd-dies-of-a-damaged-log", Breaks: "a log that etcd panics over is refused by an error of ours",
			File: "store/etcd/embedded.go", Anchor: "launch(cfg)\n\tif", Becomes: "embed.StartEtcd(memberConfig(cfg))\n\tif",
			In: "./store/etcd", Run: "^TestDamagedData$/^EmptyLog$",
		},
		{
			Name: "etcd-dies-of-a-damaged-value", Breaks: "values that etcd ends the process for are found before it starts",
			File: "store/etcd/damaged.go", Anchor: "if string(name) == bucketOfKeys {", Becomes: "if string(name) == \"\" {",
			In: "./store/etcd", Run: "^TestDamagedInside$/^Values$",
		},
		{
			Name: "etcd-launch-ends-the-process", Breaks: "what etcd ends the process for while it is launched is an error of ours",
			File: "store/etcd/embedded.go", Anchor: "launching.Store(true)", Becomes: "launching.Store(false)",
			In: "./store/etcd", Run: "^TestDamagedInside$/^LastWords$",
		},
		{
			Name: "etcd-never-ready-without-a-remedy", Breaks: "a store that does not become ready says what to do",
			File: "store/etcd/embedded.go", Anchor: "\n\treturn nil, doesNotStart(cfg, err)\n}", Becomes: "\n\treturn nil, err\n}",
			In: "./store/etcd", Run: "^TestDamagedInside$/^NeverReady$",
		},
		{
			Name: "etcd-pages-in-a-circle", Breaks: "a page that leads to itself is not followed without end",
			File: "store/etcd/pages.go", Anchor: "return fmt.Errorf(\"more than one page leads to page %d\", at)", Becomes: "return nil",
			In: "./store/etcd", Run: "^TestPagesInACircle$/^Itself$",
		},
		{
			Name: "restore-once-only", Breaks: "a restore that was killed can be tried again",
			File: "store/etcd/restore.go", Anchor: " || strings.HasPrefix(name, asidePrefix) {", Becomes: " {",
			In: "./store/etcd", Run: "^TestRestoreAgain$",
		},
		{
			Name: "restore-leaves-what-was-killed", Breaks: "what a restore left that was killed goes",
			File: "store/etcd/restore.go", Anchor: "os.RemoveAll(filepath.Join(dir, f.Name()))", Becomes: "error(nil)",
			In: "./store/etcd", Run: "^TestRestoreAgain$",
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
		{
			Name: "backup-log-is-gone", Breaks: "a data file whose log is gone is refused, which etcd would start on once and never again",
			File: "store/etcd/damaged.go", Anchor: "	if wal.Exist(log) {\n", Becomes: "	if wal.Exist(log) || log != \"\" {\n",
			In: "./store/etcd", Run: "^TestDamagedData$", Needs: "etcd",
		},
	}
}
