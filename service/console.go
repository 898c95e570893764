package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/replicas"
)

// ConsoleConfig configures a [Console].
type ConsoleConfig struct {
	Service *Service
	Self    string // the id of this replica

	// Replicas returns the running replicas, as [replicas.List.Live] does; nil means that they are
	// unknown.
	Replicas func() (live []replicas.Replica, ok bool)
}

// Console answers operators about the locks of all tenants, as this replica sees them. It keeps
// no state, and costs nothing while no operator asks.
type Console struct {
	ConsoleConfig
	lists *lists.Lists
	began time.Time
}

// NewConsole returns the console of a replica.
func NewConsole(cfg ConsoleConfig) *Console {
	s := cfg.Service
	all := lists.New(&s.view.Lists, s.figures, s.Now)
	return &Console{ConsoleConfig: cfg, lists: all, began: s.Now()}
}

// Replica returns the id of this replica.
func (c *Console) Replica() string { return c.Self }

// Draining is closed when the replica begins to shut down.
func (c *Console) Draining() <-chan struct{} { return c.Service.draining }

// LostSince returns since when this replica's feed is interrupted, and whether it is. Everything
// in the console is then as of that instant.
func (c *Console) LostSince() (at time.Time, lost bool) {
	return c.Service.view.Progress.LostSince()
}

// worstBlockers bounds the trees in an overview.
const worstBlockers = 5

// Overview is the first page that an operator sees.
type Overview struct {
	*lists.Totals
	Replicas []replicas.Replica // nil if they are not known
	LostFor  time.Duration
	Refusal  error // why the server grants nothing, or nil

	// Recent summarizes the last quarter of an hour; nil for an operator who sees only some names.
	Recent *figures.Summary
}

// Overview counts the locks that the operator may see. The error is [lock.StoreUnavailable] before
// the replica has seen any.
func (c *Console) Overview(s lists.Sight) (*Overview, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	o := &Overview{
		Totals: c.lists.Totals(s, worstBlockers), LostFor: c.Service.view.Progress.LostFor(),
		Refusal: c.Service.Store.Refusal(),
	}
	c.markClosed(o.Worst)
	if s.May == nil {
		o.Recent = new(c.Service.figures.Series(s.Tenant, figures.Step, time.Now()))
	}
	if c.ConsoleConfig.Replicas != nil {
		o.Replicas, _ = c.ConsoleConfig.Replicas()
	}
	return o, nil
}

// Locks returns a page of locks. It returns the errors of [Console.Overview].
func (c *Console) Locks(ctx context.Context, q lists.Query) (*lists.Page, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	page := c.lists.Page(q)
	c.markClosed(page.Rows)
	c.markExpiries(ctx, page.Rows)
	return page, nil
}

func (c *Console) markExpiries(ctx context.Context, lines []lists.Line) {
	c.Service.Locks.expiries.ofRows(ctx, lines, c.Service.Store.Remaining)
	for i := range lines {
		if at := &lines[i].ExpiresAt; !at.IsZero() {
			*at = c.Service.wall(*at).Round(0)
		}
	}
}

// Inspection is one lock, for operators.
type Inspection struct {
	*LockView
	Tenant       string
	Waits, Holds []figures.Bin // the distribution of the latest ones
	StaleWrites  []StaleWrite  // the newest first; none if the store did not answer
	Now          time.Time
}

// Inspect describes one lock. It returns the errors of [Console.Overview].
func (c *Console) Inspect(ctx context.Context, r lock.Ref) (*Inspection, error) {
	v, err := c.Service.Locks.Lock(ctx, r, false, nil)
	if err != nil {
		return nil, err
	}
	out := &Inspection{LockView: v, Tenant: r.Tenant, Now: c.Service.Now()}
	out.Waits, out.Holds = c.Service.figures.Distribution(r)
	out.StaleWrites = c.reportsOf(ctx, r)
	return out, nil
}

// staleWritesTimeout bounds how long a page waits for the reports of stale writes.
const staleWritesTimeout = time.Second

func (c *Console) reportsOf(ctx context.Context, r lock.Ref) []StaleWrite {
	ctx, cancel := context.WithTimeout(ctx, staleWritesTimeout)
	defer cancel()
	all, _ := c.Service.StaleWrites.Of(ctx, r) // the page is useful without them
	return all
}

// markClosed marks which of the locks on a page are closed.
func (c *Console) markClosed(lines []lists.Line) {
	for i := range lines {
		l := &lines[i]
		l.Closure = c.Service.closed(l.Tenant, []lock.Claim{{Name: l.Name}})
	}
}
