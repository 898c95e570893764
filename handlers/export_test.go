package handlers

import (
	"context"
	"net"
)

// InFlight is how many bytes of large answers are on their way.
func (r *Router) InFlight() int {
	r.endpoints.answers.mu.Lock()
	defer r.endpoints.answers.mu.Unlock()
	return r.endpoints.answers.all
}

// Fill counts as many bytes as a tenant may have on their way, and more.
func (r *Router) Fill(tenant string) { r.endpoints.answers.takeAnyway(tenant, MaxAnswersOfTenant) }

// MaxAnswersOfTenant is how many bytes of large answers a tenant may have on their way.
const MaxAnswersOfTenant = maxAnswers / answerShares

// Kept is how many bytes of answers are kept for others who ask the same, by the count and as
// it is.
func (r *Router) Kept() (counted, kept int) {
	p := r.endpoints.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.byKey {
		kept += len(one.text)
	}
	return p.bytes, kept
}

// Renderings are what operators are shown.
type Renderings struct{ *pages }

// NewRenderings returns none yet.
func NewRenderings() Renderings { return Renderings{newPages(newGate(RenderingsAtOnce))} }

// RenderingsAtOnce is how many of these are made at once.
const RenderingsAtOnce = 2

// Get has something made for a tenant, unless it is made already.
func (p Renderings) Get(ctx context.Context, tenant, key string, body func() (any, error)) error {
	_, err := p.get(ctx, tenant, key, body)
	return err
}

// Gate is that of the operations that walk many rows.
type Gate struct{ *gate }

// NewGate has so many run at once.
func NewGate(slots int) Gate { return Gate{newGate(slots)} }

// Enter waits for a slot.
func (g Gate) Enter(ctx context.Context, tenant string) error { return g.enter(ctx, tenant) }

// Leave gives it back.
func (g Gate) Leave() { g.leave() }

// Waiting counts the waiters, and those of them that the gate has by tenant.
func (g Gate) Waiting() (n int, byTenant int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, q := range g.tenants {
		byTenant += q.waiters.Len()
	}
	return g.waiting, byTenant
}

// Gate is the router's.
func (r *Router) Gate() Gate { return Gate{r.endpoints.gate} }

// The bounds of the gate.
const (
	MaxGateWaiters         = maxGateWaiters
	MaxGateWaitersOfTenant = maxGateWaitersOfTenant
)

// Rooms is on how many accounts room for large answers is taken.
func (r *Router) Rooms() int {
	r.endpoints.answers.mu.Lock()
	defer r.endpoints.answers.mu.Unlock()
	return len(r.endpoints.answers.byTenant)
}

// Conn is a connection that is counted, for requests that come over none.
func (c *Connections) Conn() net.Conn {
	conn, _ := net.Pipe()
	return c.enter(conn)
}

// Pipe is such a connection, and its client's end. authenticate has it carry a request of a tenant,
// which ends at once.
func (c *Connections) Pipe() (at, of net.Conn, authenticate func(tenant string)) {
	of, server := net.Pipe()
	conn := c.enter(server)
	return conn, of, func(tenant string) {
		conn.begin(tenant)
		conn.end(tenant)
	}
}

// LinesAtOnce is how many log lines one cause has at once.
const LinesAtOnce = linesAtOnce

// GateSlots is how many operations that walk many rows run at once.
func GateSlots() int { return gateSlots() }

// The bounds of requests that are not authenticated.
const (
	PacedAtOnce       = pacedAtOnce
	PacePause         = pacePause
	MaxPacedOfAddress = maxPacedOfAddress
	MaxHeadsOfAddress = maxHeadsOfAddress
)

// BoundHeads bounds what is read of requests that are not authenticated, in bytes.
func (c *Connections) BoundHeads(most int) { c.mostCounted = most }

// Unfinished is how much of these there is.
func (c *Connections) Unfinished() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted
}

// ReadPause is for each byte that a connection sends before it is authenticated.
const ReadPause = readPause

// The bounds of requests that change entries.
const (
	SlotsOfProcessor       = slotsOfProcessor
	SlotTime               = slotTime
	MaxSlotWaitersOfTenant = maxSlotWaitersOfTenant
)
