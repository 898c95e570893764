package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// kind is what a call asks for.
type kind string

const (
	acquire kind = "acquire"
	goOn    kind = "go on" // waiting, by the token
	renew   kind = "renew"
	release kind = "release"
	revoke  kind = "revoke" // by an operator
)

// call is one request of a client.
type call struct {
	n       int
	kind    kind
	client  *client
	replica *replica
	life    int // of the replica
	began   time.Duration
	cancel  context.CancelFunc
	asked   *asked
	held    *holding
	main    bool // its client waits for it
	gone    bool // the client no longer reads the answer
	altered bool // other parameters than those that the key was used with
	jumped  bool // the replica's clock was changed meanwhile

	claims []lock.Claim
	id     lock.ID
	number uint64

	grant *service.Grant
	err   error
}

func (k *call) String() string {
	return fmt.Sprintf(
		"call %d (client %d: %s %v at replica %d from %v on)", k.n, k.client.n, k.kind, k.claims,
		k.replica.n, k.began,
	)
}

// asked is a request for locks, which may be sent more than once.
type asked struct {
	req service.AcquireRequest
	id  lock.ID // as soon as it is known
}

// holding is an entry whose token a client has.
type holding struct {
	asked *asked
	entry *lock.Entry
	token string
	held  bool
	tries int // to release it
}

// client takes and gives back locks, one call after the other, and does not always
// behave.
type client struct {
	w     *world
	n     int
	named bool
	busy  *call
	has   []*holding
	old   []*asked // with keys, that were used before
	again *asked   // whose outcome is unknown, to be sent again
	done  bool
	turns int

	script []step // what it does instead of what it draws
	on     int    // the replica that it asks, if it has a script
	last   *asked
}

func newClient(w *world, n int) *client {
	c := &client{w: w, n: n, named: w.percent(w.Named)}
	w.schedule(w.between(0, 2*time.Second), c.turn)
	return c
}

// think has the client do something in a while.
func (c *client) think() {
	if c.w.explorer != nil && !c.w.healed {
		c.w.schedule(c.pause(), c.turn)
		return
	}
	d := c.w.between(0, c.w.Length*time.Duration(c.w.Clients)/time.Duration(c.w.Operations))
	if c.w.healed {
		d = c.w.between(0, 100*time.Millisecond)
	} else if c.w.percent(3) {
		d += c.w.between(0, 15*time.Second) // it stood still
	}
	c.w.schedule(d, c.turn)
}

// turn is when the client does what comes next.
func (c *client) turn() {
	switch c.turns++; {
	case c.busy != nil || c.done || c.w.over:
		return
	case c.w.explorer != nil && !c.w.healed:
		c.play()
	case c.w.healed || c.w.calls >= c.w.Operations && c.w.now() > c.w.Length/2:
		c.finish()
	case c.again != nil && c.w.percent(80):
		c.acquire(c.again)
	case len(c.has) > 0 && c.w.percent(60+10*len(c.has)):
		c.attend(c.has[c.w.pick(len(c.has))])
	default:
		c.acquire(c.wants())
	}
	if c.busy == nil && !c.done {
		c.think()
	}
}

// finish gives back everything, one after the other.
func (c *client) finish() {
	switch {
	case len(c.has) > 0:
		c.begin(c.about(c.has[0], release))
	case c.w.healed:
		c.done = true
	}
}

// attend does something with an entry that the client has.
func (c *client) attend(h *holding) {
	switch x := c.w.pick(100); {
	case x < 5:
		c.drop(h) // it forgets about it
	case !h.held && x < 50:
		c.begin(c.about(h, goOn))
	case !h.held && x < 60 && h.asked.req.IdempotencyKey != "":
		c.acquire(h.asked)
	case x < 60:
		c.begin(c.about(h, renew))
	default:
		c.begin(c.about(h, release))
	}
}

func (c *client) about(h *holding, k kind) *call {
	return &call{
		kind: k, asked: h.asked, held: h, claims: h.entry.Claims, id: h.entry.ID, number: h.entry.Number,
	}
}

func (c *client) drop(h *holding) {
	for i, other := range c.has {
		if other == h {
			c.has = append(c.has[:i:i], c.has[i+1:]...)
			return
		}
	}
}

// acquire sends the request, now and then to two replicas at once.
func (c *client) acquire(a *asked) {
	c.again = nil
	c.begin(c.asking(a))
	if a.req.IdempotencyKey != "" && c.w.percent(c.w.Twice) {
		twin := c.asking(a)
		twin.client, twin.replica = c, c.w.someReplica()
		if twin.replica != nil {
			c.send(twin)
		}
	}
}

func (c *client) asking(a *asked) *call {
	return &call{kind: acquire, asked: a, claims: a.req.Claims, id: a.id}
}

// begin sends a call and waits for its answer.
func (c *client) begin(k *call) {
	k.client, k.main, k.replica = c, true, c.w.someReplica()
	if c.w.explorer != nil {
		k.replica = c.w.replicaFrom(c.on)
	}
	if k.replica == nil {
		if k.kind == acquire {
			c.again = k.asked
		}
		return // all are down; the client tries again later
	}
	c.busy = k
	c.send(k)
}

func (w *world) someReplica() *replica { return w.replicaFrom(w.pick(len(w.replicas))) }

// replicaFrom returns the first replica that is up, from one on.
func (w *world) replicaFrom(first int) *replica {
	for i := range w.replicas {
		if r := w.replicas[(first+i)%len(w.replicas)]; !r.down {
			return r
		}
	}
	return nil
}

func (c *client) send(k *call) {
	w := c.w
	w.calls++
	k.n, k.began, k.life = w.calls, w.now(), k.replica.life
	w.open = append(w.open, k)
	w.truth.calls[k.n] = k
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), callerKey{}, k.n))
	k.cancel = cancel
	w.note("call", k.n, c.n, string(k.kind), k.replica.n, k.id)
	svc, calls := k.replica.svc, k.replica.calls
	calls.Add(1)
	w.crew.do(func() {
		defer calls.Done()
		k.do(ctx, svc)
		w.inbox.add(arrival{k.replica.n, k.life, "answered", k.n, "", 0, func() { c.answered(k) }})
	})
	if !w.healed && w.percent(5) {
		w.schedule(w.between(0, 5*time.Second), func() { k.disconnect() })
	}
}

// disconnect is the client's connection breaking.
func (k *call) disconnect() {
	k.client.w.note("disconnect", k.n)
	k.cancel()
	k.gone = true
}

func (k *call) do(ctx context.Context, svc *service.Service) {
	switch h := k.held; k.kind {
	case acquire:
		k.grant, k.err = svc.Acquire(ctx, k.asked.req)
	case renew:
		k.grant, k.err = svc.Entries.Renew(ctx, h.request())
	case goOn:
		k.grant, k.err = svc.Entry(ctx, h.request(), 10*time.Second)
	case release:
		k.err = svc.Entries.Release(ctx, h.request())
	case revoke:
		_, k.err = svc.Entries.Revoke(ctx, service.RevokeRequest{
			Tenant: tenant, Name: k.claims[0].Name, ID: k.id, Fence: k.number, Reason: "its host is gone",
			By: audit.Who{Subject: "ops"},
		})
	}
}

func (h *holding) request() service.TokenRequest {
	r := service.TokenRequest{Tenant: h.entry.Tenant, Name: h.entry.Name(), Token: h.token}
	if h.entry.Set {
		r.Name, r.Set, r.ID = "", true, h.entry.ID
	}
	return r
}

// answered takes the answer to a call.
func (c *client) answered(k *call) {
	w := c.w
	w.open = slices.DeleteFunc(w.open, func(o *call) bool { return o == k })
	k.cancel()
	w.note("answered", k.n, outcome(k))
	if k.grant != nil && k.grant.Token != "" {
		k.id = k.grant.Entry.ID
	}
	if k.id != "" && k.kind == acquire {
		k.asked.id = k.id
	}
	if k.life != k.replica.life || k.replica.crashed {
		k.gone = true // the replica crashed before it could answer
	}
	if k.err == nil || !errors.Is(k.err, context.Canceled) {
		if !k.gone && k.settled() && k.kind != revoke {
			w.truth.check(k)
		}
	}
	c.learn(k)
	if k.main {
		c.busy = nil
		c.think()
	}
}

// settled reports whether the numbers that the replica knows meant what they mean now
// from before the call on. While the store's past is missing only fences are sure.
func (k *call) settled() bool {
	l := k.replica.wire
	return k.life == k.replica.life && l.numbered == k.client.w.numbered && l.since <= k.began
}

// outcome is what is logged of an answer: what its client can see.
func outcome(k *call) string {
	var e *lock.Error
	switch {
	case errors.As(k.err, &e):
		return fmt.Sprint(e.Code, " ", e.Reason, e.OutcomeUnknown)
	case k.err != nil:
		return k.err.Error()
	case k.grant == nil:
		return "ok"
	}
	return fmt.Sprint(k.grant.Held, k.grant.Entry.Number)
}

// learn is what the client makes of an answer.
func (c *client) learn(k *call) {
	var e *lock.Error
	errors.As(k.err, &e)
	known := e != nil && e.Code != lock.StoreUnavailable && e.Code != lock.Draining
	switch {
	case k.kind == revoke:
	case k.gone && k.kind == acquire:
		c.unsure(k.asked)
	case k.gone:
	case k.kind == acquire && k.grant != nil && k.grant.Token != "":
		c.keep(k.asked, k.grant)
	case k.kind == acquire:
		if !known {
			c.unsure(k.asked)
		} else if k.asked.req.IdempotencyKey != "" {
			c.old = append(c.old, k.asked)
		}
	case known || k.kind == release && k.err == nil:
		c.drop(k.held)
	case k.err == nil:
		k.held.entry, k.held.held = k.grant.Entry, k.grant.Held
	case k.kind == release:
		if k.held.tries++; k.held.tries > 20 {
			c.w.problem("%v: cannot be released", k)
			c.drop(k.held)
		}
	}
}

// unsure notes a request that may have been granted.
func (c *client) unsure(a *asked) {
	if a.req.IdempotencyKey != "" {
		c.again = a
	}
}

func (c *client) keep(a *asked, g *service.Grant) {
	c.w.truth.told = append(c.w.truth.told, g.Entry.ID)
	if a.req.IdempotencyKey != "" {
		c.old = append(c.old, a)
	}
	if a.req.Callback != nil {
		return // it waits for that
	}
	for _, h := range c.has {
		if h.entry.ID == g.Entry.ID {
			h.entry, h.token, h.held = g.Entry, g.Token, g.Held
			return
		}
	}
	c.has = append(c.has, &holding{asked: a, entry: g.Entry, token: g.Token, held: g.Held})
}
