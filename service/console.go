package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/replicas"
)

// ConsoleConfig of a [Console].
type ConsoleConfig struct {
	Service *Service
	Self    string // the id of this replica

	// Replicas tells which replicas run, as [replicas.List.Live]; nil is not known.
	Replicas func() (live []replicas.Replica, ok bool)
}

// Console answers operators about the locks of all tenants, as this replica sees them. It keeps
// nothing, and costs nothing while no operator asks.
type Console struct {
	ConsoleConfig
	lists *lists.Lists
	began time.Time
}

// NewConsole returns the console of a replica.
func NewConsole(cfg ConsoleConfig) *Console {
	s := cfg.Service
	return &Console{ConsoleConfig: cfg, lists: lists.New(s.view, s.figures, s.Now), began: s.Now()}
}

// Replica returns the id of this replica.
func (c *Console) Replica() string { return c.Self }

// Draining is closed when the replica begins to shut down.
func (c *Console) Draining() <-chan struct{} { return c.Service.draining }

// LostSince returns since when this replica does not see what happens in the store, and whether it
// is so: then all that the console has is as of that instant.
func (c *Console) LostSince() (at time.Time, lost bool) { return c.Service.view.LostSince() }

// worstBlockers is how many are in an overview.
const worstBlockers = 5

// Overview is what an operator sees first.
type Overview struct {
	*lists.Totals
	Replicas []replicas.Replica // nil if they are not known
	LostFor  time.Duration
	Refusal  error // why nothing may be granted, or nil

	// Lately is what happened in the last quarter of an hour; nil for who may see some names only.
	Lately *figures.Summary
}

// Overview counts the locks that the operator may see. The error is [lock.StoreUnavailable] before
// the replica has seen any.
func (c *Console) Overview(s lists.Sight) (*Overview, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	o := &Overview{
		Totals: c.lists.Totals(s, worstBlockers), LostFor: c.Service.view.LostFor(),
		Refusal: c.Service.Store.Refusal(),
	}
	c.markClosed(o.Worst)
	if s.May == nil {
		o.Lately = new(c.Service.figures.Series(s.Tenant, time.Now()))
	}
	if c.ConsoleConfig.Replicas != nil {
		o.Replicas, _ = c.ConsoleConfig.Replicas()
	}
	return o, nil
}

// Locks returns a page of locks. It returns the errors of [Console.Overview].
func (c *Console) Locks(ctx context.Context, q lists.Query) (*lists.Page, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	page := c.lists.Page(q)
	c.markClosed(page.Rows)
	c.markExpiries(ctx, page.Rows)
	return page, nil
}

func (c *Console) markExpiries(ctx context.Context, lines []lists.Line) {
	c.Service.expiries.ofRows(ctx, lines, c.Service.Store.Remaining)
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
	Waits, Holds []figures.Bin // how the latest are distributed
	StaleWrites  []StaleWrite  // the newest first; none if the store did not answer
	Now          time.Time
}

// Inspect tells about one lock. It returns the errors of [Console.Overview].
func (c *Console) Inspect(ctx context.Context, r lock.Ref) (*Inspection, error) {
	v, err := c.Service.Lock(ctx, r, false, nil)
	if err != nil {
		return nil, err
	}
	out := &Inspection{LockView: v, Tenant: r.Tenant, Now: c.Service.Now()}
	out.Waits, out.Holds = c.Service.figures.Distribution(r)
	out.StaleWrites = c.staleWrites(ctx, r)
	return out, nil
}

// staleWritesTimeout bounds for how long a page waits for the reports of stale writes.
const staleWritesTimeout = time.Second

func (c *Console) staleWrites(ctx context.Context, r lock.Ref) []StaleWrite {
	ctx, cancel := context.WithTimeout(ctx, staleWritesTimeout)
	defer cancel()
	all, _ := c.Service.StaleWrites(ctx, r) // the page is of use without them
	return all
}

// markClosed marks which of the locks on a page are closed.
func (c *Console) markClosed(lines []lists.Line) {
	for i := range lines {
		l := &lines[i]
		l.Closure = c.Service.closed(l.Tenant, []lock.Claim{{Name: l.Name}})
	}
}
