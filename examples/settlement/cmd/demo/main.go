// Command demo lets workers in three languages settle 500 invoices under locks,
// kills one of them, pauses another for longer than its lease, and says what
// happened: first with a ledger that ignores the fence, then with one that checks
// it. ../../demo builds the servers and starts it.
//
// Environment: STORE is passed to the server as --store. FENCE=off or FENCE=on
// runs one of the two.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// limit bounds one run.
const limit = 90 * time.Second

func main() {
	dir := flag.String("dir", "", "an empty folder for data, tokens and logs; removed after success")
	api := flag.String("api", "", "the Fencepost server")
	ledger := flag.String("ledger", "", "the ledger")
	stay := flag.Bool("stay", false, "keep the last server running until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(
		context.Background(),
		os.Interrupt,
		syscall.SIGTERM,
		syscall.SIGHUP,
	)
	defer stop()
	err := runs(ctx, play{
		dir: *dir, api: *api, ledger: *ledger, store: cmp.Or(os.Getenv("STORE"), "embedded"),
	}, os.Getenv("FENCE"), *stay)
	if err == nil {
		err = os.RemoveAll(*dir)
	} else {
		err = fmt.Errorf("%w\ndemo: the logs are in %s", errors.Join(err, keepLogs(*dir)), *dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// keepLogs removes everything else, secrets above all.
func keepLogs(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".log" {
			return err
		}
		return os.Remove(path)
	})
}

// runs shows the damage, and then the run that prevents it; fence chooses one of them.
func runs(ctx context.Context, shared play, fence string, stay bool) error {
	for _, mode := range []string{"off", "on"} {
		if fence != "" && fence != mode {
			continue
		}
		p := shared
		p.dir, p.fencing = filepath.Join(shared.dir, mode), mode == "on"
		last := mode == "on" || fence == "off"
		if err := run(ctx, &p, stay && last); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, p *play, stay bool) error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	defer p.end()
	report, err := p.run(ctx)
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	if err := report.verdict(); err != nil || !stay {
		return err
	}
	err = p.invite(os.Stdout)
	if err == nil {
		<-ctx.Done()
	}
	return err
}
