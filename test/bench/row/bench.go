package row

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// Config says how to run rows.
type Config struct {
	// Dir holds binaries, data and logs of all servers; it must be on the disk
	// whose flushes should count.
	Dir string
	// Duration of one round of one side, after Warmup.
	Duration, Warmup time.Duration
	// Rounds of each side.
	Rounds int
	// Waiters is how many requests wait in S7 and S8 and come at once in S14, Entries how many
	// locks are held in S11 and S12, and in S9 up to the 50 000 of its bar; 10 000 and 100 000
	// make the rows comparable to their bars.
	Waiters, Entries int
	// Keep leaves the rows' folders in Dir; otherwise a row that ended well
	// removes its own, which may be a gigabyte of logs.
	Keep bool
	// Ways are parts of the names of the ways of S17 that run; none is all.
	Ways []string
	// Limit is how many requests a second the hostile tenant of S17 may make;
	// 0 is the server's default, which is more than this machine answers.
	Limit int
	// Older is the binary of an older revision of the API server, for the rows "older" and S18.
	Older string
	// Profiles is a folder for processor and heap profiles of Fencepost; none are
	// taken when it is empty.
	Profiles string
	// Charts is a folder for the charts.
	Charts string
	// Progress receives a line for each round.
	Progress io.Writer
}

// Definition is what measures one row, or several from the same rounds.
type Definition struct {
	IDs  []string
	What string
	run  func(context.Context, *bench) ([]Outcome, error)
}

func define(ids, what string, run func(context.Context, *bench) ([]Outcome, error)) Definition {
	return Definition{strings.Split(ids, ","), what, run}
}

// Definitions returns all rows in the order in which they run. The last one needs the binary
// of an older revision; it runs only when named.
func Definitions() []Definition {
	return []Definition{
		define("S1,S15", "uncontended, 128 clients, against v3lock", duels(locks["S1"]...)),
		define("S2,S15", "uncontended, 128 clients, against concurrency.Mutex", duels(locks["S2"]...)),
		define("S4", "one client, against v3lock", duels(locks["S4"]...)),
		define("S5,S16", "one lock, against concurrency.Mutex", duels(locks["S5"]...)),
		define("S6", "on ZooKeeper, against go-zookeeper's lock and Curator's", duels(locks["S6"]...)),
		define("S7", "hand-over with many waiters", runS7),
		define("S8", "memory of a waiting request", runS8),
		define("S9", "many held locks that are renewed", runS9),
		define("S10", "latency at a fixed rate, against a bare put", runS10),
		define("S11", "the first page of each list", runS11),
		define("S12", "start to ready on a warm data folder", runS12),
		define("S13", "S1, S2 and S5 on a cluster of three", duels(locks["S13"]...)),
		define("S14", "many requests at once for one lock", runS14),
		define("S17", "a tenant next to a hostile one", runS17),
		define("S18", "a replica that only follows, against the one that serves", runS18),
		define("S19", "callbacks of many grants at once", runS19),
		define("Redis", "against SET NX PX and compare-and-delete", duels(locks["Redis"]...)),
		define("start", "size of the binary, start on an empty folder", runStart),
		define("older", "against an older revision of ours", runOlder),
	}
}

// groups are names for rows that run together: those against peers, and the others.
var groups = map[string]string{
	"peers":  "S1,S2,S4,S5,S6,S8,S10,S13,Redis,start",
	"stress": "S7,S9,S11,S12,S14,S17,S18,S19",
}

// Select returns the definitions of the rows and groups that ids names, separated by commas, in
// the order of [Definitions]; all but older when ids is empty.
func Select(ids string) ([]Definition, error) {
	wanted := map[string]string{} // as it is written
	for id := range strings.SplitSeq(cmp.Or(ids, "peers,stress"), ",") {
		id = strings.TrimSpace(id)
		for row := range strings.SplitSeq(cmp.Or(groups[id], id), ",") {
			wanted[strings.ToLower(row)] = row
		}
	}
	var chosen []Definition
	known := map[string]bool{}
	for _, d := range Definitions() {
		picked := false
		for _, id := range d.IDs {
			id = strings.ToLower(id)
			known[id], picked = true, picked || wanted[id] != ""
		}
		if picked {
			chosen = append(chosen, d)
		}
	}
	for id, row := range wanted {
		if !known[id] {
			return nil, fmt.Errorf("no row %q", row)
		}
	}
	return chosen, nil
}

// Run runs one row after the other. It returns the outcomes of the rows that finished, and the
// errors of the others.
func Run(ctx context.Context, config Config, rows []Definition) ([]Outcome, error) {
	if err := findPeers(ctx, rows); err != nil {
		return nil, err
	}
	b := &bench{Config: config}
	var outcomes []Outcome
	var errs []error
	for _, d := range rows {
		fmt.Fprintf(b.Progress, "%s: %s\n", d.IDs[0], d.What)
		got, err := b.runRow(ctx, d)
		outcomes = append(outcomes, got...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.IDs[0], err))
			fmt.Fprintf(b.Progress, "%s failed: %v\n", d.IDs[0], err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return outcomes, errors.Join(errs...)
}

// findPeers fails if the server of a peer is missing, before the first row runs.
func findPeers(ctx context.Context, rows []Definition) error {
	var errs []error
	for _, d := range rows {
		var err error
		switch d.IDs[0] {
		case "S6":
			_, err = fetchCurator(ctx)
		case "S14":
			_, err = fetchZooKeeper(ctx)
		case "Redis":
			_, err = rig.RedisVersion(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *bench) runRow(ctx context.Context, d Definition) ([]Outcome, error) {
	b.row, b.dir, b.replicas = d.IDs[0], filepath.Join(b.Dir, d.IDs[0]), 0
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	outcomes, err := d.run(ctx, b)
	if err != nil || b.Keep {
		return outcomes, err
	}
	return outcomes, os.RemoveAll(b.dir)
}

// bench is the state of a run.
type bench struct {
	Config
	row       string // the row that is running
	dir       string // its folder
	replicas  int    // that the row has started, each on a folder of its own
	etcd, api string // binaries, built when first needed
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.Progress, "  %s %s\n", b.row, fmt.Sprintf(format, args...))
}

func (b *bench) etcdBinary(ctx context.Context) (_ string, err error) {
	if b.etcd == "" {
		b.logf("building etcd")
		b.etcd, err = rig.BuildEtcd(ctx)
	}
	return b.etcd, err
}

func (b *bench) apiBinary(ctx context.Context) (_ string, err error) {
	if b.api == "" {
		b.logf("building the API server")
		b.api, err = rig.BuildAPI(ctx, b.Dir, rig.Stripped())
	}
	return b.api, err
}

// closers closes what a row opened, the last one first.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) closeInto(err *error) {
	for _, f := range slices.Backward(*c) {
		*err = errors.Join(*err, f())
	}
}
