// Command demo lets workers in three languages settle 500 invoices under locks,
// kills one of them, stops another for longer than its lease, and says what came
// of it. It is started by ../../demo, which builds the servers first.
//
// Environment: STORE is passed to the server as --store, FENCE=off makes the
// ledger accept every write.
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

// limit is how long the whole story may take.
const limit = 90 * time.Second

func main() {
	dir := flag.String(
		"dir",
		"",
		"a folder of our own for data, tokens and logs; removed when all went well",
	)
	api := flag.String("api", "", "the Fencepost server")
	ledger := flag.String("ledger", "", "the ledger")
	flag.Parse()
	ctx, stop := signal.NotifyContext(
		context.Background(),
		os.Interrupt,
		syscall.SIGTERM,
		syscall.SIGHUP,
	)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p := play{
		dir: *dir, api: *api, ledger: *ledger,
		store: cmp.Or(os.Getenv("STORE"), "embedded"), fencing: os.Getenv("FENCE") != "off",
	}
	err := run(ctx, &p)
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
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".log" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

func run(ctx context.Context, p *play) error {
	defer p.end()
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.perform(ctx); err != nil {
		return err
	}
	report, err := p.report(ctx)
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	return report.verdict()
}
