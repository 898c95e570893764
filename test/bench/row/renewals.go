package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	renewedLocks = 50_000
	renewedTTL   = 60 // seconds
	renewEvery   = 20 * time.Second
	// renewFor is longer than a TTL by two turns: what is never renewed is lost by then, and
	// cannot be renewed when its turn comes.
	renewFor = renewedTTL*time.Second + 2*renewEvery
	renewers = 256 // renewals that may be under way at once
)

// runS9 renews many held locks at a fixed rate.
func runS9(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(renewers); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return nil, err
	}
	f, err := clients(r, &cs)
	if err != nil {
		return nil, err
	}
	s := &renewalBench{
		bench: b, replica: r, clients: f.Clients(renewers),
		log: filepath.Join(b.dir, "fencepost-1", "etcd", "member", "wal"),
	}
	if err := s.hold(ctx); err != nil {
		return nil, err
	}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	return s.outcomes(), nil
}

// renewalBench is the row.
type renewalBench struct {
	*bench
	*replica
	clients []*side.Client
	log     string // the folder of the store's log
	tickets []side.Ticket

	renewals          *load.Result
	appended          int // to the store's log while all were renewed
	used              usage
	busiest           string // load average
	failures          failures
	missing           int // locks that are not listed afterwards
	appendedByHolding int
}

// hold takes all locks. They have to be there when their first turn comes.
func (s *renewalBench) hold(ctx context.Context) error {
	start := time.Now()
	began, err := logged(s.log)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	body := fmt.Appendf(nil, `{"ttl_seconds":%d}`, renewedTTL)
	err = askAll(ctx, s.clients, min(s.Entries, renewedLocks), heldLock, body, func(t side.Ticket) {
		mu.Lock()
		defer mu.Unlock()
		s.tickets = append(s.tickets, t) // in the order of the grants, to be renewed in it
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	s.logf("%d locks taken in %v", len(s.tickets), took.Round(time.Millisecond))
	if took > renewedTTL*time.Second-renewEvery {
		return fmt.Errorf(
			"it took %v to take the locks: the first leases may end before their turn", took,
		)
	}
	now, err := logged(s.log)
	if s.appendedByHolding = now - began; err == nil && s.appendedByHolding == 0 {
		err = errors.New(
			"the store's log did not grow while the locks were taken: it is not read as it should be",
		)
	}
	return err
}

// renew renews all locks in turn.
func (s *renewalBench) renew(ctx context.Context) error {
	before, err := logged(s.log)
	if err != nil {
		return err
	}
	workers := make([]load.Worker, len(s.clients))
	for i, c := range s.clients {
		workers[i] = &renewer{c, s.tickets, &s.failures}
	}
	start := spend([]int{s.PID()})
	s.renewals, err = load.Open{
		Workers: workers, Rate: s.rate(), Duration: max(s.Duration, renewFor),
		Name: func(cycle int) string { return strconv.Itoa(cycle % len(s.tickets)) },
	}.Run(ctx)
	if err != nil {
		return err
	}
	s.used, s.busiest = spend([]int{s.PID()}).since(start), firstField(readOr("/proc/loadavg", "?"))
	after, err := logged(s.log)
	if err != nil {
		return err
	}
	s.appended = after - before
	listed, err := countLocks(ctx, s.replica, tenant)
	s.missing = len(s.tickets) - listed
	h := s.renewals.Acquire
	s.logf(
		"%d renewals: p50 %v p99 %v max %v; %d failed; %d locks missing; the store's log grew by %d entries, by %d when the locks were taken",
		h.Count(),
		h.Percentile(50),
		h.Percentile(99),
		h.Percentile(100),
		s.failures.count(),
		s.missing,
		s.appended,
		s.appendedByHolding,
	)
	return err
}

// rate is how many renewals a second keep all locks.
func (s *renewalBench) rate() float64 { return float64(len(s.tickets)) / renewEvery.Seconds() }

// renewer has the renewals of locks, by their numbers, for cycles.
type renewer struct {
	client   *side.Client
	tickets  []side.Ticket
	failures *failures
}

// Acquire renews. A failure is counted, and does not end the run.
func (r *renewer) Acquire(ctx context.Context, number string) (int64, error) {
	i, err := strconv.Atoi(number)
	if err != nil {
		return 0, err
	}
	if err := r.client.Renew(ctx, r.tickets[i]); err != nil {
		r.failures.add(err)
	}
	return r.tickets[i].Fence, ctx.Err()
}

// Release does nothing: the lock is kept.
func (r *renewer) Release(context.Context) error { return nil }

// failures counts errors, and keeps the first one.
type failures struct {
	mu    sync.Mutex
	n     int
	first error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.first == nil {
		f.first = err
	}
}

func (f *failures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// logged returns how many entries the log of the embedded store has. Each is a write that
// the members of a cluster would agree on. It may be read while the store has it open.
func logged(dir string) (entries int, err error) {
	w, err := wal.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{})
	if err != nil {
		return 0, fmt.Errorf("read the store's log: %w", err)
	}
	defer func() {
		if closed := w.Close(); !errors.Is(
			closed, os.ErrInvalid,
		) { // of the folder, which was not opened to be read from
			err = errors.Join(err, closed)
		}
	}()
	_, _, all, err := w.ReadAll()
	return len(all), err
}

func (s *renewalBench) outcomes() []Outcome {
	const atMost = 50 * time.Millisecond
	h := s.renewals.Acquire
	what := fmt.Sprintf(
		"%s held locks, each renewed every %.0f s: ", number(float64(len(s.tickets))),
		renewEvery.Seconds(),
	)
	perRenewal := float64(s.appended) / float64(h.Count())
	lost := s.failures.count() + max(s.missing, 0)
	note := []string{fmt.Sprintf(
		"The store's log grew by %d entries meanwhile, and by %d when the locks were taken. "+
			"Cores busy: server %.2f, load %.2f, rest %.2f; load average at the end %s.",
		s.appended, s.appendedByHolding, s.used.server, s.used.load, s.used.rest, s.busiest,
	)}
	if s.failures.first != nil {
		note = append(note, "A renewal that failed: "+strings.TrimSpace(s.failures.first.Error()))
	}
	return []Outcome{
		{
			ID: "S9", What: what + "a renewal, p99", Ours: millis(h.Percentile(99)),
			Bar: "≤ " + millis(atMost), Met: verdict(h.Percentile(99) <= atMost),
			OurLatency: latency(h), Notes: note,
		},
		{
			ID: "S9", What: what + "leases lost or renewals that failed", Ours: strconv.Itoa(lost), Bar: "0",
			Met: verdict(lost == 0),
		},
		// What is left is the store's own upkeep, which does not grow with the renewals.
		{
			ID: "S9", What: what + "consensus writes for a renewal",
			Ours: strconv.FormatFloat(perRenewal, 'f', 5, 64), Bar: "0", Met: verdict(perRenewal < 0.001),
		},
	}
}
