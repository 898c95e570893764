package handlers

import (
	"bytes"
	"context"
	"net"
	"time"

	"github.com/fencepost/fencepost/service/view"
)

// InFlight is how many bytes of large answers are on their way.
func (r *Router) InFlight() int {
	r.endpoints.answers.mu.Lock()
	defer r.endpoints.answers.mu.Unlock()
	return r.endpoints.answers.all
}

// PageJSON is a page of locks as it is answered.
func PageJSON(p *view.Page) (string, error) {
	var text bytes.Buffer
	err := encodeTo(&text, pageText{p})
	return text.String(), err
}

// Fill counts as many bytes as a tenant may have on their way, and more.
func (r *Router) Fill(tenant string) { r.endpoints.answers.takeAnyway(tenant, MaxAnswersOfTenant) }

// RefusalPause is for how long a refusal is held back, in the middle.
const RefusalPause = refusalPause

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
func NewRenderings() Renderings { return Renderings{newPages()} }

// Get has something made for a tenant, unless it is made already.
func (p Renderings) Get(ctx context.Context, tenant, key string, body func() (any, error)) error {
	_, err := p.get(ctx, asker{tenant: tenant}, key, body)
	return err
}

// AnswerTurns are those in which large answers are made.
type AnswerTurns struct{ *turns }

// NewAnswerTurns has so many made at once.
func NewAnswerTurns(n int64) AnswerTurns { return AnswerTurns{newTurns(n)} }

// Take waits for a tenant's turn.
func (t AnswerTurns) Take(ctx context.Context, tenant string) (done func(), err error) {
	turn, err := t.take(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return turn.done, nil
}

// TakeParts is Take for what is made in parts. Pass lets others come between two of them.
func (t AnswerTurns) TakeParts(ctx context.Context, tenant string) (pass func(context.Context) error, done func(), err error) {
	turn, err := t.take(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	return turn.pass, turn.done, nil
}

// Enter has those of a tenant go on one after the other.
func (t AnswerTurns) Enter(ctx context.Context, tenant string, apart time.Duration) error {
	return t.enter(ctx, tenant, apart)
}

// Remembered counts the tenants that have a turn or wait for one.
func (t AnswerTurns) Remembered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tenants)
}

// TakeTurn takes the turn of a tenant.
func (r *Router) TakeTurn(tenant string) (done func()) {
	turn, err := r.endpoints.turns.take(context.Background(), tenant)
	if err != nil {
		panic(err)
	}
	return turn.done
}

// KeepTurn has no other turn of a tenant, and those of others, until done is called.
func (r *Router) KeepTurn(tenant string) (done func()) {
	own := r.endpoints.turns.want(tenant)
	if err := own.next.Acquire(context.Background(), 1); err != nil {
		panic(err)
	}
	return func() {
		own.next.Release(1)
		r.endpoints.turns.leave(tenant, own)
	}
}

// Turns counts those that have the turn of a tenant or wait for it.
func (r *Router) Turns(tenant string) int { return r.endpoints.turns.wantedOf(tenant) }

// Rooms is on how many accounts room for large answers is taken.
func (r *Router) Rooms() int {
	r.endpoints.answers.mu.Lock()
	defer r.endpoints.answers.mu.Unlock()
	return len(r.endpoints.answers.byTenant)
}

// Rendering counts the tenants for which answers are put together that are made for them alone, or wait for that.
func (r *Router) Rendering() int {
	t := r.endpoints.pages.making
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tenants)
}

// KeepTelling has no other stream of a tenant told what is dear until done is called.
func (r *Router) KeepTelling(tenant string) (done func()) {
	turn, err := r.endpoints.tellers.take(context.Background(), tenant)
	if err != nil {
		panic(err)
	}
	return turn.done
}

// KeepOpening has no other stream of a tenant begin until done is called.
func (r *Router) KeepOpening(tenant string) (done func()) {
	turn, err := r.endpoints.openers.take(context.Background(), tenant)
	if err != nil {
		panic(err)
	}
	return turn.done
}

// Opening counts those that begin, or wait for that.
func (r *Router) Opening(tenant string) int { return r.endpoints.openers.wantedOf(tenant) }

// Telling counts those that are told what is dear, or wait for it.
func (r *Router) Telling(tenant string) int { return r.endpoints.tellers.wantedOf(tenant) }

func (t *turns) wantedOf(tenant string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tenants[tenant] == nil {
		return 0
	}
	return t.tenants[tenant].wanted
}

// Conn is a connection that is counted, for requests that come over none.
func (c *Connections) Conn() net.Conn {
	conn, _ := net.Pipe()
	return c.enter(conn)
}

// Anonymous is how many addresses are remembered of who was refused and is not known.
func (r *Router) Anonymous() int {
	r.endpoints.anonymous.mu.Lock()
	defer r.endpoints.anonymous.mu.Unlock()
	return len(r.endpoints.anonymous.byNetwork)
}

// MaxAnonymousNetworks is how many such addresses are remembered at most, and AnonymousRefusals how many such
// refusals an address gets at once. Of one cause LinesAtOnce have a line at once.
const (
	MaxAnonymousNetworks = maxAnonymousNetworks
	AnonymousRefusals    = anonymousRefusals
	LinesAtOnce          = linesAtOnce
)
