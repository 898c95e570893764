package row

import (
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
	// Empty is the command that serves empty answers, see side.ServeEmpty.
	Empty []string
	// Duration of one round of one side, after Warmup.
	Duration, Warmup time.Duration
	// Rounds of each side.
	Rounds int
	// Waiters is how many requests wait in S7 and S8 and come at once in S14, Entries how many locks are
	// held in S11 and S12, and in S9 up to the 50 000 of its bar; 10 000 and 100 000 make the rows comparable to their bars.
	Waiters, Entries int
	// Keep leaves the rows' folders in Dir; otherwise a row that ended well
	// removes its own, which may be a gigabyte of logs.
	Keep bool
	// Ways are parts of the names of the ways of the row hostile that are run; none is all.
	Ways []string
	// Limit is how many requests a second the tenant may make that does its worst in the row hostile;
	// 0 is what the server has without further ado, which is more than this machine answers.
	Limit int
	// Older is the binary of an older revision of the API server, for the row "older".
	Older string
	// Store is what the rows S11, streams, async, batch and dashboard have: etcd, which is embedded
	// where one server runs, or ZooKeeper.
	Store Store
	// Profiles is a folder for processor and heap profiles of Fencepost; none are
	// taken when it is empty.
	Profiles string
	// Progress receives a line for each round.
	Progress io.Writer
}

// Definition is a row that can be run.
type Definition struct {
	ID   string
	What string
	run  func(context.Context, *bench) ([]Outcome, error)
}

// Definitions returns all rows in the order in which they are run. The last
// ones need the binary of an older revision, or measure the peers alone; they run only
// when named.
func Definitions() []Definition {
	return []Definition{
		{"S1", "uncontended, 128 clients, against v3lock", s1().run},
		{"S2", "uncontended, 128 clients, against concurrency.Mutex", s2().run},
		{"S3", "uncontended, 128 clients, against empty answers", s3().run},
		{"S4", "one client, against v3lock", s4().run},
		{"S5", "32 clients on one lock, against concurrency.Mutex", s5().run},
		{"S6", "on ZooKeeper, against go-zookeeper's lock", runS6},
		{"S7", "hand-over with many waiters", runS7},
		{"S8", "memory of a waiting request", runS8},
		{"S9", "many held locks that are renewed", runS9},
		{"S10", "latency at a fixed rate, against a bare put", runS10},
		{"S11", "the first page of each list", runS11},
		{"S12", "start to ready on a warm data folder", runS12},
		{"S13", "S1, S2 and S5 on a cluster of three", runS13},
		{"S14", "many requests at once for one lock", runS14},
		{"S15", "processor time of an uncontended cycle", runS15},
		{"S16", "processor time of a cycle on one lock", s16().run},
		{"sets", "a set of 8, against one lock", runSets},
		{"webhooks", "from a request to the webhook of its grant", runWebhooks},
		{"streams", "1 000 streams of events", runStreams},
		{"async", "entries that wait without a request, and a replica that dies", runAsync},
		{"batch", "jobs that are called when their turn has come", runBatch},
		{"dashboard", "what operators who watch cost", runDashboard},
		{"hostile", "a tenant beside one that does its worst", runHostile},
		{"order", "S1 with the order of locks learnt, against without", order().run},
		{"older", "against an older revision of ours", runOlder},
		{"ceiling", "empty answers alone", runCeiling},
		{"peers", "etcd's locks alone", runPeers},
	}
}

// onlyNamed is how many definitions at the end run only when named.
const onlyNamed = 3

// Select returns the definitions that ids name, separated by commas, or all
// but the last ones when ids is empty.
func Select(ids string) ([]Definition, error) {
	all := Definitions()
	if ids == "" {
		return all[:len(all)-onlyNamed], nil
	}
	var chosen []Definition
	for id := range strings.SplitSeq(ids, ",") {
		i := slices.IndexFunc(all, func(d Definition) bool { return strings.EqualFold(d.ID, strings.TrimSpace(id)) })
		if i < 0 {
			return nil, fmt.Errorf("no row %q", id)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Run runs one row after the other. It returns the outcomes of those that ran
// to their end, and the errors of the others.
func Run(ctx context.Context, config Config, rows []Definition) ([]Outcome, error) {
	b := &bench{Config: config}
	var outcomes []Outcome
	var errs []error
	for _, d := range rows {
		fmt.Fprintf(b.Progress, "%s: %s\n", d.ID, d.What)
		got, err := b.runRow(ctx, d)
		outcomes = append(outcomes, got...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.ID, err))
			fmt.Fprintf(b.Progress, "%s failed: %v\n", d.ID, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return outcomes, errors.Join(errs...)
}

func (b *bench) runRow(ctx context.Context, d Definition) ([]Outcome, error) {
	b.row, b.dir, b.replicas = d.ID, filepath.Join(b.Dir, d.ID), 0
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
		b.api, err = rig.BuildAPI(ctx, b.Dir)
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
