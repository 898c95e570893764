package memory

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// attemptLimit bounds one attempt of a call, as in the adapters.
const attemptLimit = 1500 * time.Millisecond

// Operation is the kind of a request over a [Wire].
type Operation string

// The operations.
const (
	Put       Operation = "put"
	Find      Operation = "find"
	Exclude   Operation = "exclude" // attempts of a put that are no longer wanted
	Remove    Operation = "remove"
	Narrow    Operation = "narrow"
	Revoke    Operation = "remove and put"
	Renew     Operation = "refresh"
	Remaining Operation = "remaining"
	Queue     Operation = "queue"
	Newest    Operation = "newest"
	Distrust  Operation = "distrust"
	List      Operation = "list"
)

// Wire connects a client to its server.
type Wire interface {
	// Call carries a request to the server, by do, and its answer back, which is do's error. It may
	// do neither, or only one, and may even call do after it has returned. Then it returns
	// [ErrUnknown], or [ErrUnsent] if the request cannot have reached the server. Of a put or a
	// commit it may return [engine.Full], whether it has called do or not. It returns when ctx ends.
	Call(ctx context.Context, op Operation, id lock.ID, do func() error) error

	// Listen waits until a feed can begin, and returns a context for it that ends
	// when the wire is cut.
	Listen(ctx context.Context) (context.Context, context.CancelFunc)

	// Tell waits until a step of the history arrives at the client.
	Tell(ctx context.Context, r Run) error
}

// Errors of a wire for a request without an answer.
var (
	ErrUnknown = errors.New("no answer")
	ErrUnsent  = errors.New("not sent")
)

var _ store.Store = (*Client)(nil)

// Client is one replica's client of a [Server].
type Client struct {
	server *Server
	wire   Wire
	small  *engine.Records
	joins  *engine.Joins

	group group

	closing context.Context
	close   context.CancelFunc
	tasks   sync.WaitGroup

	mu       sync.Mutex
	id       int64
	attempts int64
	writer   int64  // the number of its attempts to put, see [Server.shutOut]
	greatest uint64 // number in any answer
	doubts   int    // proofs of a lost past that the server does not have yet
}

// Connect returns a client that reaches the server over the wire; a nil wire never fails. The
// caller closes it.
func (s *Server) Connect(w Wire) *Client {
	if w == nil {
		w = NewCable()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients++
	c := &Client{server: s, wire: w, id: s.clients}
	c.small = newRecords(c)
	c.closing, c.close = context.WithCancel(context.Background())
	c.joins = &engine.Joins{
		Store: c, Trust: trusted{c}, Timeout: s.cfg.CallLimit, Closing: c.closing,
		Cleaner: engine.NewCleaner(slog.New(slog.DiscardHandler)),
	}
	return c
}

// Close ends the client's tasks, and waits for them.
func (c *Client) Close() {
	c.close()
	c.joins.Cleaner.Close()
	c.tasks.Wait()
	c.small.Close()
}

// attempt returns a unique name.
func (c *Client) attempt() Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	return Attempt(c.id<<32 | c.attempts)
}

// writing returns the number that an attempt to put has now.
func (c *Client) writing() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writer
}

// writes raises it.
func (c *Client) writes(writer int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writer = max(c.writer, writer)
}

func (c *Client) newest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.greatest
}

// note records the number in an answer. A number below the one known when the question was sent
// proves that the server lost its past.
func (c *Client) note(known, number uint64) (lostPast bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greatest = max(c.greatest, number)
	return number < known
}

// inBackground runs a task that outlives the call of ctx, but not the client.
func (c *Client) inBackground(ctx context.Context, task func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(c.closing, cancel)
	c.tasks.Go(func() {
		defer cancel()
		defer unhook()
		task(ctx)
	})
}

// Remove implements [store.Store].
func (c *Client) Remove(
	ctx context.Context,
	e *lock.Entry,
	why lock.Reason,
	while ...*lock.Entry,
) error {
	if ctx.Err() != nil {
		return store.Unavailable(ctx.Err(), string(Remove), false)
	}
	r := &removal{client: c, entry: e, why: why, while: while}
	return engine.Remove(ctx, c.server.cfg.CallLimit, r)
}

// removal is one call that removes an entry.
type removal struct {
	client *Client
	entry  *lock.Entry
	why    lock.Reason
	while  []*lock.Entry
	tries  []Attempt // with unknown outcomes
}

// Try implements [engine.Removal].
func (r *removal) Try(ctx context.Context) error {
	this := r.client.attempt()
	_, err := once(ctx, r.client, Remove, r.entry.ID, func() (none, uint64, error) {
		number, err := r.client.server.remove(this, r.entry, r.why, r.while)
		return none{}, number, err
	})
	switch {
	case errors.Is(err, ErrUnsent):
		err = errors.Join(batch.ErrNotSent, err)
	case unanswered(err):
		r.tries = append(r.tries, this)
	}
	return err
}

// Did implements [engine.Removal].
func (r *removal) Did(ctx context.Context) (bool, error) {
	if len(r.tries) == 0 {
		return false, nil
	}
	return ask(ctx, r.client, Find, r.entry.ID, func() (bool, uint64, error) {
		did, number := r.client.server.removedBy(r.tries)
		return did, number, nil
	})
}

// Narrow implements [store.Store].
func (c *Client) Narrow(
	ctx context.Context, e *lock.Entry, kept []lock.Claim,
) (now *lock.Entry, err error) {
	return engine.Narrow(ctx, c.server.cfg.CallLimit, func(ctx context.Context) (*lock.Entry, error) {
		known := c.newest()
		now, err := once(ctx, c, Narrow, e.ID, func() (*lock.Entry, uint64, error) {
			return c.server.narrow(e, kept, known)
		})
		if errors.Is(err, ErrUnsent) {
			err = errors.Join(batch.ErrNotSent, err)
		}
		return now, err
	})
}

// Renew implements [store.Store].
func (c *Client) Renew(ctx context.Context, e *lock.Entry) error {
	_, err := ask(ctx, c, Renew, e.ID, func() (none, uint64, error) {
		number, err := c.server.renew(e)
		return none{}, number, err
	})
	return err
}

// Remaining implements [store.Store].
func (c *Client) Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error) {
	return ask(
		ctx, c, Remaining, e.ID, func() (time.Duration, uint64, error) { return c.server.remaining(e) },
	)
}

// Queue implements [store.Store].
func (c *Client) Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	type reading struct {
		entries []*lock.Entry
		number  uint64
	}
	got, err := ask(ctx, c, Queue, lock.ID(r.Tenant+"/"+r.Name), func() (reading, uint64, error) {
		entries, number := c.server.queue(r)
		return reading{entries, number}, number, nil
	})
	return got.entries, got.number, err
}

// Newest implements [store.Store].
func (c *Client) Newest(ctx context.Context) (uint64, error) {
	return ask(ctx, c, Newest, "", func() (uint64, uint64, error) {
		number := c.server.Number()
		return number, number, nil
	})
}

// Distrust implements [store.Store].
func (c *Client) Distrust(ctx context.Context, number uint64) error {
	_, err := ask(ctx, c, Distrust, "", c.distrusting(number))
	return err
}

// Refusal implements [store.Store]. All clients know at once what the server knows.
func (c *Client) Refusal() error {
	if refusal := (trusted{c}).Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// trusted is what the client knows of the server's past.
type trusted struct{ client *Client }

func (t trusted) Refusal() *lock.Error {
	c := t.client
	c.mu.Lock()
	doubted := c.doubts > 0
	c.mu.Unlock()
	if doubted || !c.server.Trusted() {
		return refusal()
	}
	return c.server.refusedForm()
}

func (c *Client) distrusting(number uint64) func() (none, uint64, error) {
	return func() (none, uint64, error) { return none{}, c.server.distrust(number), nil }
}
