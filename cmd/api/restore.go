package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fencepost/fencepost/store/etcd"
)

// restore makes an embedded store from a backup.
func restore(ctx context.Context, args []string, env environment, stdout io.Writer) error {
	var dir, from string
	f := newCommandFlags("api restore", stdout)
	f.StringVar(&from, "from", "", "`file` that api backup or etcdctl wrote (required)")
	f.StringVar(&dir, "data-dir", "./data", "`folder` for the embedded store, which has to be empty")
	if _, err := parse(f, args, env); err != nil {
		return err
	}
	if from == "" {
		return usagef("--from: name the file with the backup")
	}
	made, err := etcd.Restore(ctx, from, dir)
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	_, err = fmt.Fprintf(stdout, `%[1]s is restored to %[2]s. Run the server as the user that did this.

The highest fence in the backup may be %[3]d. Fences above it were handed out since, and the
resources remember them. So the server grants nothing until it is started with
--fence-floor above every fence that was ever handed out. Take this one

  --fence-floor %[4]d

if fewer than %[5]d writes were made since the backup: a day has fewer at 11,000 a second.
If it may be more, add as many again for each day. The floor can only be raised.
`, from, dir, made.Highest, made.Highest+etcd.RestoredBump, etcd.RestoredBump)
	return err
}
